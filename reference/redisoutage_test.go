package main_test

import (
	"errors"
	"os/exec"
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
