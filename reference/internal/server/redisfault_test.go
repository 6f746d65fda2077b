//go:build unix

package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

func TestWhyRedisCannotBeUsedIsNamed(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		url  string   // %s: the address
		acl  []string // a command that the default user sends first
		want string
	}{
		{"full", []string{"--maxmemory", "100kb"}, "redis://%s", nil, "OOM command not allowed"},
		{"no password", nil, "redis://%s", []string{"CONFIG", "SET", "requirepass", "secret"}, "uthenticat"}, // "Authentication required", or "unauthenticated" if the command is long
		{"wrong password", nil, "redis://:hush@%s", []string{"CONFIG", "SET", "requirepass", "secret"}, "WRONGPASS"},
		{"no permission", nil, "redis://pets:hush@%s", []string{"ACL", "SETUSER", "pets", "on", ">hush", "~other*", "+@all"}, "NOPERM"},
		{"replica", []string{"--replicaof", "127.0.0.1 1"}, "redis://%s", nil, "READONLY"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := redistest.Start(t, tt.args...)
			if len(tt.acl) > 0 {
				_, err := server.Do(tt.acl...)
				must(t, err)
			}
			c := testSettings(t)
			c.Redis, c.OnFailure = []string{fmt.Sprintf(tt.url, server.Addr)}, "open"
			var log bytes.Buffer
			s := newServer(c, Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), redisBudget: time.Minute})
			if err := s.openState(t.Context()); err != nil {
				t.Fatalf("open = %v, want that the server starts without Redis", err)
			}
			defer s.close()
			if strings.Count(log.String(), "Redis cannot be used") != 1 || !strings.Contains(log.String(), tt.want) {
				t.Errorf("the log is %q, want %q in it", log.String(), tt.want)
			}
			err := s.shared.err(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "on_redis_failure: open") {
				t.Errorf("readiness says %v, want %q and what is in force", err, tt.want)
			}
			if strings.Contains(log.String()+fmt.Sprint(err), "hush") {
				t.Errorf("the password shows: %s %v", log.String(), err)
			}
			if tt.name != "no permission" {
				return
			}
			_, err = server.Do(append([]string{"ACL", "SETUSER", "pets", "reset", "on", ">hush"}, documentedPermissions(t)...)...)
			must(t, err)
			if err := s.shared.err(t.Context()); err != nil {
				t.Errorf("with the permissions of SCALING.md, readiness says %v", err)
			}
		})
	}
}

// documentedPermissions returns the permissions that SCALING.md names.
func documentedPermissions(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/SCALING.md")
	must(t, err)
	_, after, _ := strings.Cut(string(page), "```\n~petstore{*")
	list, _, found := strings.Cut(after, "```")
	if !found {
		t.Fatal("SCALING.md names no permissions")
	}
	return append([]string{"~petstore{*"}, strings.Fields(list)...)
}

// During an outage the circuit opens again after each probe.
func TestCircuitLogRepeatsOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		log := &circuitLog{logger: slog.New(slog.NewTextHandler(&b, nil)), mode: "local"}
		lines := func(part string) int { return strings.Count(b.String(), part) }
		gone := errors.New("gone")
		outage := func(cause error) {
			log.failed(cause) // the probe at the start
			for range 30 {    // two minutes and a half
				log.changed(cause)
				time.Sleep(5 * time.Second)
			}
		}
		outage(gone)
		if got := lines("Redis cannot be used"); got != 3 {
			t.Errorf("%d lines in an outage of 150 seconds, want one each minute", got)
		}
		log.changed(nil)
		log.changed(gone)
		if again, failed := lines("Redis answers again"), lines("Redis cannot be used"); again != 1 || failed != 4 {
			t.Errorf("%d and %d lines after Redis answered and failed again, want one each, immediately", again, failed)
		}
	})
}

// The Redis client writes to the log of the server, and an outage does not fill it.
func TestMessagesOfTheRedisClientAreLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := &redisLog{logger: slog.New(slog.NewTextHandler(&out, nil))}
		for range 90 {
			l.Printf(t.Context(), "failed to dial after %d attempts", 1)
			time.Sleep(time.Second)
		}
		const want = `level=WARN msg="Redis client" message="failed to dial after 1 attempts" dropped=59` + "\n"
		if got := out.String(); strings.Count(got, "\n") != 2 || !strings.HasSuffix(got, want) {
			t.Errorf("90 messages in 90 seconds made the log\n%s\nwant 2 lines, the second of which ends with %s", got, want)
		}
	})
}

// masters is an engine whose subjects are divided among three masters.
type masters struct {
	ratelimit.Limiter
	away int // bits: the first one fails immediately, the others when the caller waits no longer
}

func (m *masters) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	master := int(subject[len(subject)-1]) % 3
	if m.away&(1<<master) == 0 {
		return m.Limiter.Take(ctx, subject, plan, cost)
	}
	if master > 0 {
		<-ctx.Done()
	}
	return ratelimit.Decision{}, ratelimit.ErrUnavailable
}

func TestReadinessNeedsOneMaster(t *testing.T) {
	const all = 0b111
	for away := range all + 1 {
		synctest.Test(t, func(t *testing.T) {
			local, err := memory.New(memory.Options{})
			must(t, err)
			primary := &masters{local, away}
			s := &shared{primary: primary, budget: defaultRedisBudget, mode: "local"}
			s.Limiter, err = failover.New(primary, failover.Options{})
			must(t, err)
			defer s.Close()
			if err := s.err(t.Context()); (err != nil) != (away == all) {
				t.Errorf("the masters %03b are away: readiness says %v, want an error only if all are", away, err)
			}
		})
	}
}

// refusing is an engine of a Redis that refuses one request of a probe and closes the connection.
type refusing struct {
	ratelimit.Limiter
	subject string
}

type refusal struct{ error }

func (refusal) RedisError() {}

func (r *refusing) Take(_ context.Context, subject string, _ *ratelimit.Plan, _ int64) (ratelimit.Decision, error) {
	err := io.EOF
	if subject == r.subject {
		err = refusal{errors.New("NOAUTH")}
	}
	return ratelimit.Decision{}, fmt.Errorf("%w: %w", ratelimit.ErrUnavailable, err)
}

func TestProbeNamesARefusal(t *testing.T) {
	for i := range 16 {
		s := &shared{primary: &refusing{subject: fmt.Sprint("failover:probe:", i)}, budget: defaultRedisBudget}
		if err := s.probe(t.Context()); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
			t.Errorf("request %d was refused with NOAUTH, the others failed with EOF: the probe says %v, want NOAUTH", i, err)
		}
	}
}

func TestErrorsOfBansWithoutRedis(t *testing.T) {
	other := errors.New("other")
	for _, tt := range []struct {
		name string
		err  error
		want string // "" for the error itself
	}{
		{"only here", fmt.Errorf("%w: %w", failover.ErrLocalOnly, ratelimit.ErrUnavailable), "Redis cannot be used, so A. Repeat the request when Redis can be used again."},
		{"nowhere", fmt.Errorf("x: %w", ratelimit.ErrUnavailable), "Redis cannot be used, so B. Repeat the request when Redis can be used again."},
		{"another error", other, ""},
		{"no error", nil, ""},
	} {
		got := explainBan(tt.err, "A", "B")
		if tt.want == "" {
			if got != tt.err {
				t.Errorf("%s: %v, want it unchanged", tt.name, got)
			}
			continue
		}
		e, ok := errors.AsType[*apierror.Error](got)
		if !ok || e.Status != 503 || e.Message != tt.want || e.RetryAfter < time.Second || !errors.Is(got, tt.err) {
			t.Errorf("%s: %v, want 503 with %q, when to try again, and its cause", tt.name, got, tt.want)
		}
	}
}
