package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"

	"bytes"
	"os/exec"
)

// A server that starts before its database waits for it.
func TestStartBeforePostgres(t *testing.T) {
	t.Parallel()
	s := postgrestest.Start(t)
	dir, config := onPostgres(t, s.URL("postgres"), "listen: 127.0.0.1:0", "admin_listen: "+freeAddress(t))
	s.Stop()
	type result struct {
		p   *process
		err error
	}
	launched := make(chan result, 1)
	cmd := exec.Command("petstore", "serve", config)
	cmd.Dir, cmd.Env = dir, environment()
	go func() {
		p, err := launchCommand(cmd, dir)
		launched <- result{p, err}
	}()
	admin := "http://" + setting(t, dir, "admin_listen")
	eventually(t, "/readyz says what the server waits for", func() bool {
		a, err := ask(t.Context(), "GET", admin+"/readyz", "", "")
		if err == nil && strings.Contains(string(a.body), postgrestest.Password) {
			t.Fatalf("/readyz says the password: %s", a.body)
		}
		return err == nil && a.status == 503 && strings.Contains(string(a.body), "starting: waiting for the database: ")
	})
	mustAsk(t, 200, "GET", admin+"/healthz", "", "")
	s.Restart()
	r := <-launched
	if r.err != nil {
		t.Fatal(r.err)
	}
	t.Cleanup(r.p.kill)
	if !strings.Contains(r.p.notice, "pet_live_") || len(r.p.logged("cannot reach the database; the server waits until it can")) != 1 ||
		len(r.p.logged("the database can be reached")) != 1 {
		t.Errorf("the log is %v and the notice %q, want one line each, and the first key", r.p.log, r.p.notice)
	}
	mustAsk(t, 200, "GET", admin+"/readyz", "", "")
}

// A server that waits for its database ends at once when it is told to.
func TestStopBeforePostgres(t *testing.T) {
	t.Parallel()
	dir, config := onPostgres(t, "postgres://other", "listen: 127.0.0.1:0", "admin_listen: "+freeAddress(t))
	cmd := exec.Command("petstore", "serve", config, "--database=postgres://pets:hush@"+freeAddress(t)+"/pets")
	cmd.Dir, cmd.Env = dir, environment()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	admin := "http://" + setting(t, dir, "admin_listen")
	eventually(t, "the server waits", func() bool {
		a, err := ask(t.Context(), "GET", admin+"/readyz", "", "")
		return err == nil && strings.Contains(string(a.body), "waiting for the database")
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v, want exit code 0", err)
	}
	if text := out.String(); strings.Contains(text, "hush") || !strings.Contains(text, "other users of this machine can see the password in --database") {
		t.Errorf("the log is %s, want a warning about the password in the flag, without it", text)
	}
}

// setting returns the value of a setting in petstore.yaml.
func setting(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "petstore.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+": "); ok {
			return strings.TrimSpace(value)
		}
	}
	t.Fatalf("petstore.yaml has no %s", name)
	return ""
}
