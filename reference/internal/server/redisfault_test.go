//go:build unix

package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// redisDo sends a command as the default user.
func redisDo(t *testing.T, addr, password string, args ...any) {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, Password: password})
	defer c.Close()
	if err := c.Do(t.Context(), args...).Err(); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}

func TestWhyRedisCannotBeUsedIsNamed(t *testing.T) {
	for _, tt := range []struct {
		name     string
		args     []string
		url      string   // %s: the address
		password string   // of the default user
		setUp    []string // a command that the default user sends first
		want     string
		fix      []any // what the advice says
	}{
		{"full", []string{"--maxmemory", "100kb"}, "redis://%s", "", nil,
			"Redis is full; raise its maxmemory", []any{"CONFIG", "SET", "maxmemory", "100mb"}},
		{"no password", nil, "redis://%s", "secret", []string{"CONFIG", "SET", "requirepass", "secret"},
			"Redis asks for a password; add it to the URL", []any{"CONFIG", "SET", "requirepass", ""}},
		{"wrong password", nil, "redis://:hush@%s", "secret", []string{"CONFIG", "SET", "requirepass", "secret"},
			"Redis refuses the user or the password in the URL", nil},
		{"no permission", nil, "redis://pets:hush@%s", "", []string{"ACL", "SETUSER", "pets", "on", ">hush", "~other*", "+@all"},
			"the Redis user lacks a permission; grant it with ACL SETUSER: ~petstore{* +evalsha +eval +time +mget +set +del +exists +zadd +zrem +zremrangebyscore +zrevrange +zscan +expireat +cluster|slots +asking +ping +info",
			append([]any{"ACL", "SETUSER", "pets", "reset", "on", ">hush"}, words(redisPermissions)...)},
		{"replica", []string{"--replicaof", "127.0.0.1 1"}, "redis://%s", "", nil,
			"this Redis server is a replica and refuses writes", []any{"REPLICAOF", "NO", "ONE"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := redistest.Start(t, tt.args...)
			if len(tt.setUp) > 0 {
				_, err := server.Do(tt.setUp...)
				must(t, err)
			}
			c := testSettings(t)
			c.Redis = []string{fmt.Sprintf(tt.url, server.Addr)}
			var log bytes.Buffer
			s := newServer(c, Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), redisBudget: time.Minute})
			if err := s.openState(t.Context()); err != nil {
				t.Fatalf("open = %v, want that the server starts without Redis", err)
			}
			defer s.close()
			what, do, _ := strings.Cut(tt.want, "; ")
			if !strings.Contains(log.String(), "Redis cannot be used: "+what) || !strings.Contains(log.String(), do) {
				t.Errorf("the log is %q, want %q in it", log.String(), tt.want)
			}
			err := s.shared.err(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "on_redis_failure: local") {
				t.Errorf("readiness says %v, want %q and what is in force", err, tt.want)
			}
			if strings.Contains(log.String()+fmt.Sprint(err), "hush") {
				t.Errorf("the password shows: %s %v", log.String(), err)
			}
			if tt.fix == nil {
				return
			}
			redisDo(t, server.Addr, tt.password, tt.fix...)
			if err := s.shared.err(t.Context()); err != nil {
				t.Errorf("after the advice was followed, readiness says %v", err)
			}
		})
	}
}

// words returns the words of text as arguments of a command.
func words(text string) []any {
	var args []any
	for _, word := range strings.Fields(text) {
		args = append(args, word)
	}
	return args
}

func TestDiagnoseOfOtherErrors(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6379}, Err: errors.New("refused")}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("redislimit: %w", refused), "no connection to Redis at 127.0.0.1:6379; …"},
		{fmt.Errorf("redislimit: %w", context.DeadlineExceeded), "no answer from Redis in time; …"},
		{errors.New("OOM"), "calls to Redis fail; see the error in the log of the server, and the log of Redis"},
	} {
		if got, want := diagnose(tt.err).String(), strings.TrimSuffix(tt.want, "…"); !strings.HasPrefix(got, want) {
			t.Errorf("diagnose(%v) = %q, want %q", tt.err, got, tt.want)
		}
	}
}

// During an outage the circuit opens again after each probe.
func TestCircuitLogRepeatsOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		log := &circuitLog{logger: slog.New(slog.NewTextHandler(&b, nil)), mode: "local"}
		lines := func(part string) int { return strings.Count(b.String(), part) }
		gone, slow := errors.New("gone"), context.DeadlineExceeded
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
		log.changed(slow)
		if got := lines("Redis cannot be used"); got != 4 {
			t.Errorf("%d lines after another fault, want one more, at once", got)
		}
		log.changed(nil)
		log.changed(slow)
		if again, failed := lines("Redis answers again"), lines("Redis cannot be used"); again != 1 || failed != 5 {
			t.Errorf("%d and %d lines after Redis answered and failed again, want one each, at once", again, failed)
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
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 2 {
			t.Fatalf("90 messages in 90 seconds made %d lines, want 2:\n%s", len(lines), out.String())
		}
		for i, want := range []string{
			`level=WARN msg="Redis client" message="failed to dial after 1 attempts" dropped=0`,
			`level=WARN msg="Redis client" message="failed to dial after 1 attempts" dropped=59`,
		} {
			if !strings.HasSuffix(lines[i], want) {
				t.Errorf("line %d is %q, want %q at its end", i+1, lines[i], want)
			}
		}
	})
}

func TestARefusedCertificateOfRedisIsNamed(t *testing.T) {
	redis := httptest.NewUnstartedServer(http.NotFoundHandler())
	redis.Config.ErrorLog = log.New(io.Discard, "", 0)
	redis.StartTLS()
	defer redis.Close()
	c := testSettings(t)
	c.Redis = []string{"rediss://" + redis.Listener.Addr().String()}
	s := newServer(c, Options{Logger: slog.New(slog.DiscardHandler), redisBudget: time.Minute})
	if err := s.openState(t.Context()); err != nil {
		t.Fatalf("open = %v, want that the server starts without Redis", err)
	}
	defer s.close()
	err := s.shared.err(t.Context())
	for _, want := range []string{"the certificate of Redis is refused: x509: ", "SSL_CERT_FILE"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("readiness says %v, want %q in it", err, want)
		}
	}
}

// masters is an engine whose subjects are divided among three masters.
type masters struct {
	ratelimit.Limiter
	away int // bits: the first one fails at once, the others when the caller waits no longer
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
