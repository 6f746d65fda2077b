package main_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
)

// A server that ends during an outage says that it could not hand over what it
// counted. The client library writes nothing of its own.
func TestSIGTERMWithoutRedis(t *testing.T) {
	t.Parallel()
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
			t.Parallel()
			redis := miniredis.RunT(t)
			dir := t.TempDir()
			writeFile(t, dir, "petstore.yaml", "on_redis_failure: "+mode+"\n")
			key := roomyKey(t, dir, "ann")
			address := redis.Addr()
			redis.Close()
			p := serve(t, dir, "--config=petstore.yaml", "--redis=redis://"+address)
			// Nobody has to be refused first before an operator can see it.
			if a := mustAsk(t, 200, "GET", p.admin+"/readyz", "", ""); !strings.Contains(string(a.body), address) ||
				!strings.Contains(string(a.body), "on_redis_failure: "+mode) {
				t.Errorf("readiness without Redis says %s, want so, and what is in force", a.body)
			}
			if lines := p.logged("Redis cannot be used; check the setting redis and the log of Redis"); len(lines) != 1 {
				t.Errorf("the log says %d times that there is no Redis, want once at the start", len(lines))
			}
			a := mustAsk(t, status, "GET", p.api+"/v1/pets", key, "")
			if a.header.Get("Retry-After") == "" != (status == 200) || a.header.Get("X-RateLimit-Limit") == "" {
				t.Errorf("%d with the wrong Retry-After, or without the fields of the limit: %v", status, a.header)
			}
		})
	}
}
