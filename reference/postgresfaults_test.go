package main_test

import (
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
)

// While PostgreSQL is away, nobody is told that a key is wrong.
func TestKeysWithoutPostgres(t *testing.T) {
	testenv.Long(t, "stops a PostgreSQL of its own")
	t.Parallel()
	s := postgrestest.Start(t)
	dir, config := onPostgres(t, s.URL("postgres"))
	key := roomyKey(t, dir, "ann", config)
	p := serve(t, dir, config)
	mustAsk(t, 200, "GET", p.api+"/v1/pets", key, "")
	s.Stop()
	other := strings.TrimSpace(petstore(t, t.TempDir(), "keys", "create", "--name=test", "--owner=eve", "--plan=free")) // of another database
	for _, k := range []string{key, other} {
		for range 3 {
			checkUnavailable(t, mustAsk(t, 503, "GET", p.api+"/v1/pets", k, ""))
		}
	}
	mustAsk(t, 401, "GET", p.api+"/v1/pets", "", "")               // nothing to look up
	mustAsk(t, 401, "GET", p.api+"/v1/pets", "pet_live_wrong", "") // nor here
	a := mustAsk(t, 503, "GET", p.admin+"/readyz", "", "")
	if !strings.Contains(string(a.body), `"server":"ok"`) || strings.Contains(string(a.body), `"database":"ok"`) {
		t.Errorf("/readyz says %s, want that the database is away", a.body)
	}
	mustAsk(t, 200, "GET", p.admin+"/healthz", "", "")
	s.Restart()
	eventually(t, "keys are known again", func() bool {
		known, err := ask(t.Context(), "GET", p.api+"/v1/pets", key, "")
		if err == nil && known.status == 401 {
			t.Fatalf("the key is answered with %s", known.body)
		}
		return err == nil && known.status == 200
	})
	mustAsk(t, 401, "GET", p.api+"/v1/pets", other, "")
	mustAsk(t, 200, "GET", p.admin+"/readyz", "", "")
	if err := p.stop(); err != nil {
		t.Error(err)
	}
}

// acknowledgesSoon waits until a server is ready and stores pets again.
func acknowledgesSoon(t *testing.T, p *process, key string) {
	t.Helper()
	eventually(t, "pets are acknowledged again", func() bool {
		a, err := ask(t.Context(), "POST", p.api+"/v1/pets", key, `{"name":"Rex","categoryId":1}`)
		return err == nil && a.status == 201 && isReady(t, p)
	})
}

// PostgreSQL accepts what it is sent and answers nothing.
func TestPostgresHangs(t *testing.T) {
	testenv.Long(t, "waits for timeouts")
	t.Parallel()
	s := postgrestest.Start(t)
	dir, config := onPostgres(t, s.URL("postgres"), "timeouts: {store: 500ms}")
	key := roomyKey(t, dir, "ann", config)
	p := serve(t, dir, config)
	mustAsk(t, 201, "POST", p.api+"/v1/pets", key, `{"name":"Rex","categoryId":1}`)
	s.Freeze()
	for range 3 {
		checkUnavailable(t, mustAsk(t, 503, "POST", p.api+"/v1/pets", key, `{"name":"Rex","categoryId":1}`))
		checkUnavailable(t, mustAsk(t, 503, "GET", p.api+"/v1/pets", key, ""))
	}
	mustAsk(t, 503, "GET", p.admin+"/readyz", "", "")
	mustAsk(t, 200, "GET", p.admin+"/healthz", "", "")
	s.Thaw()
	acknowledgesSoon(t, p, key)
	s.Freeze()
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(2 * patience):
		t.Error("the server does not end while the database hangs")
	}
	s.Thaw()
}

// checkUnavailable checks the answer of a server whose database cannot be used.
func checkUnavailable(t *testing.T, a answer) {
	t.Helper()
	var envelope struct {
		Code   string
		Status int
	}
	if err := json.Unmarshal(a.body, &envelope); err != nil || a.status != 503 || envelope.Code != "unavailable" ||
		envelope.Status != 503 || a.header.Get("Retry-After") == "" || a.header.Get("X-RateLimit-Limit") == "" {
		t.Errorf("without the database the answer is %d, Retry-After %q, %s, want 503 unavailable", a.status, a.header.Get("Retry-After"), a.body)
	}
}

// A server that ends during an outage says that it could not hand over what it
// counted. The client library writes nothing of its own.
func TestSIGTERMWithoutRedis(t *testing.T) {
	redis := miniredis.RunT(t)
	dir := t.TempDir()
	key := roomyKey(t, dir, "ann")
	p := serve(t, dir, "--redis=redis://"+redis.Addr())
	redis.Close()
	mustAsk(t, 200, "GET", p.api+"/v1/pets", key, "")
	err := p.stop()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
		t.Errorf("the server ended with %v, want the exit code 1", err)
	}
	const want = "petstore: cannot count in Redis the requests that were admitted without it: failover: Close: usage of 1 subject is not merged\n"
	if got := p.stderr(); got != want {
		t.Errorf("standard error is %q, want %q", got, want)
	}
}

func TestOnRedisFailure(t *testing.T) {
	for mode, status := range map[string]int{"closed": 503, "open": 200} {
		t.Run(mode, func(t *testing.T) {
			redis := miniredis.RunT(t)
			dir := t.TempDir()
			writeFile(t, dir, "petstore.yaml", "on_redis_failure: "+mode+"\n")
			key := roomyKey(t, dir, "ann")
			address := redis.Addr()
			redis.Close()
			p := serve(t, dir, "--config=petstore.yaml", "--redis=redis://"+address)
			// Nobody has to be refused first before an operator can see it.
			if a := mustAsk(t, 200, "GET", p.admin+"/readyz", "", ""); !strings.Contains(string(a.body), "no connection to Redis at "+address) ||
				!strings.Contains(string(a.body), "on_redis_failure: "+mode) {
				t.Errorf("readiness without Redis says %s, want so, and what is in force", a.body)
			}
			if lines := p.logged("Redis cannot be used: no connection to Redis at " + address); len(lines) != 1 {
				t.Errorf("the log says %d times that there is no Redis, want once at the start", len(lines))
			}
			a := mustAsk(t, status, "GET", p.api+"/v1/pets", key, "")
			if a.header.Get("Retry-After") == "" != (status == 200) || a.header.Get("X-RateLimit-Limit") == "" {
				t.Errorf("%d with the wrong Retry-After, or without the fields of the limit: %v", status, a.header)
			}
		})
	}
}
