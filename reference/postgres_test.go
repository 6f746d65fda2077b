package main_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
)

// onPostgres writes the settings of a server on PostgreSQL that keeps its usage in a
// file, and returns its directory and the flag that names the settings.
func onPostgres(t *testing.T, url string, more ...string) (dir, config string) {
	t.Helper()
	dir = t.TempDir()
	writeFile(t, dir, "petstore.yaml", fmt.Sprintf("database: %q\nusage_file: usage.db\n%s\n", url, strings.Join(more, "\n")))
	return dir, "--config=petstore.yaml"
}

// The password of the database is in nothing that a server writes or answers, whatever
// happens to the database. After an outage the server goes on without a restart.
func TestPostgresPasswordDoesNotShow(t *testing.T) {
	testenv.Long(t, "stops a PostgreSQL of its own")
	t.Parallel()
	s := postgrestest.Start(t)
	s.Exec("postgres", "CREATE ROLE pets LOGIN PASSWORD 'hushhush'", "CREATE DATABASE pets OWNER pets")
	url := s.UserURL("pets", "hushhush", "pets")
	dir, config := onPostgres(t, url)
	p := serve(t, dir, config)
	key := roomyKey(t, dir, "ann", config)
	var texts []string
	see := func(created int) {
		for _, path := range []string{"/readyz", "/metrics", "/console/console.json"} {
			if a, err := ask(t.Context(), "GET", p.admin+path, "", ""); err == nil {
				texts = append(texts, string(a.body))
			}
		}
		texts = append(texts, string(mustAsk(t, created, "POST", p.api+"/v1/pets", key, pet).body))
	}
	see(201)
	writeFile(t, dir, "petstore.yaml", fmt.Sprintf("database: %q\nusage_file: usage.db\n", strings.Replace(url, "hushhush", "hushhush2", 1)))
	eventually(t, "a reload", func() bool { return len(p.logged(reloaded)) > 0 })
	s.Stop()
	see(503)
	for _, args := range [][]string{
		{"keys", "list", config}, {"migrate", config}, {"plans", config}, {"backup", "copy.db", config},
		{"keys", "list", "--database=" + url + "&sslmode=wrong"}, {"keys", "list", "--database=postgres://pets:hushhush@h:port/pets"},
		{"serve", "--listen=127.0.0.1:0", "--admin-listen=", "--database=" + url, "--usage-file=other.db", "--tls-cert=none.pem", "--tls-key=none.pem"},
		{"serve", "--listen=127.0.0.1:0", "--admin-listen=", "--database=" + url + "&sslrootcert=none.pem&sslmode=verify-full", "--usage-file=other.db"},
	} {
		code, said := command(t, dir, args...)
		if succeeds := args[0] == "plans"; succeeds != (code == 0) {
			t.Errorf("petstore %s ended with %d: %s", strings.Join(args, " "), code, said)
		}
		texts = append(texts, said)
	}
	s.Restart()
	eventually(t, "readiness", func() bool { return isReady(t, p) })
	see(201)
	must(t, p.stop())
	for _, name := range []string{"serve.log", "serve.err"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		texts = append(texts, string(text))
	}
	for _, text := range texts {
		if i := strings.Index(text, "hushhush"); i >= 0 {
			t.Errorf("the password is in: …%s", text[max(0, i-300):])
		}
	}
	if all := strings.Join(texts, ""); !strings.Contains(all, "pets@") || !strings.Contains(all, `"need_restart":["database"`) {
		t.Error("the name of the database or its change is nowhere: this test looks in the wrong places")
	}
}

func isReady(t *testing.T, p *process) bool {
	t.Helper()
	a, err := ask(t.Context(), "GET", p.admin+"/readyz", "", "")
	return err == nil && a.status == 200
}

// freeAddress returns an address of the loopback interface that is free now.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().String()
}

// A server that starts before its database waits for it.
func TestStartBeforePostgres(t *testing.T) {
	testenv.Long(t, "starts a PostgreSQL of its own late")
	t.Parallel()
	s := postgrestest.Start(t)
	admin := freeAddress(t)
	dir, config := onPostgres(t, "postgres://other", "listen: 127.0.0.1:0", "admin_listen: "+admin)
	s.Stop()
	type result struct {
		p   *process
		err error
	}
	launched := make(chan result, 1)
	cmd := exec.Command("petstore", "serve", config, "--database="+s.URL("postgres"))
	cmd.Dir, cmd.Env = dir, environment()
	go func() {
		p, err := launchCommand(cmd, dir)
		launched <- result{p, err}
	}()
	admin = "http://" + admin
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
	const warning = "other users of this machine can see the password in --database; set PETSTORE_DATABASE or PETSTORE_DATABASE_FILE instead"
	if len(r.p.logged(warning)) != 1 {
		t.Errorf("the log is %v, want a warning about the password in the flag", r.p.log)
	}
}
