//go:build unix

package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/animalstore/gatehouse/internal/testenv"
)

const (
	userName = "postgres"

	// Password is the password in [Server.URL], which no text may show.
	Password = "pass-Wort-4711"
)

// binaries returns the directory with PostgreSQL's binaries, or "". PATH often has only
// the clients, so initdb is what counts.
func binaries() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		if resolved, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(resolved) // where all of them are
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/[1-9][0-9]/bin")
	if len(found) == 0 {
		return ""
	}
	return slices.Max(found)
}

// tryToRun returns why PostgreSQL cannot run here: it is not on the machine, or root may
// not become another user.
var tryToRun = sync.OnceValue(func() error {
	for _, v := range os.Environ() { // pgx reads PGSERVICE and others
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "PG") {
			_ = os.Unsetenv(name)
		}
	}
	return command("postgres", "--version").Run()
})

// require skips the test, or fails it, if PostgreSQL cannot run on the machine.
func require(t testing.TB) {
	t.Helper()
	if err := tryToRun(); err != nil {
		testenv.Missing(t, fmt.Sprintf("a PostgreSQL that runs (%v)", err))
	}
}

// unprivileged returns the user that runs the servers, or nil if it is this one.
func unprivileged() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, _ := strconv.ParseUint(u.Uid, 10, 32)
			gid, _ := strconv.ParseUint(u.Gid, 10, 32)
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	return &syscall.Credential{Uid: 65534, Gid: 65534}
}

// command returns a command of PostgreSQL.
func command(name string, args ...string) *exec.Cmd {
	return background(filepath.Join(binaries(), name), args...)
}

// background returns a command that runs as the unprivileged user, and that an interrupt of
// the test does not reach. It does not get variables of the environment such as PGHOST.
func background(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: unprivileged(), Setpgid: true}
	return cmd
}

// janitorText waits for the end of this process, however it ends, stops what it has started,
// and removes the directory.
const janitorText = `read _
for p in "$1"/*/postmaster.pid "$1"/*.pid; do [ -f "$p" ] && kill -QUIT $(head -n 1 "$p"); done
for i in 1 2 3 4 5 6 7 8 9; do rm -rf "$1" && exit; sleep 1; done`

// folder returns the directory with the data of all servers of this test binary.
var folder = sync.OnceValues(func() (path string, err error) {
	if path, err = os.MkdirTemp("", "postgrestest"); err != nil {
		return "", err
	}
	if c := unprivileged(); c != nil {
		if err := os.Chown(path, int(c.Uid), int(c.Gid)); err != nil {
			return "", err
		}
	}
	cmd := background("/bin/sh", "-c", janitorText, "sh", path)
	if _, err := cmd.StdinPipe(); err != nil { // open until this process ends
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	go func() { _ = cmd.Wait() }() // keeps the pipe from the garbage collector
	return path, nil
})

var count atomic.Int64

// newPath returns a path in the folder that is free.
func newPath(prefix string) (string, error) {
	dir, err := folder()
	return filepath.Join(dir, prefix+strconv.FormatInt(count.Add(1), 10)), err
}

// writeFile writes a file that the user of the servers can read, whatever the umask is.
func writeFile(path, text string) error {
	return errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, 0o644))
}

// initialize makes a data directory. Texts are ordered as a person would, so that a test
// notices a statement that needs the order of bytes and does not say so.
func initialize(data string) error {
	if err := writeFile(data+".password", Password+"\n"); err != nil {
		return err
	}
	out, err := command("initdb", "--pgdata", data, "--username", userName, "--pwfile", data+".password", "--auth", "scram-sha-256",
		"--encoding", "UTF8", "--no-locale", "--locale-provider", "icu", "--icu-locale", "en-US", "--no-sync", "--no-instructions").CombinedOutput()
	if err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return nil
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// eventually calls f until it succeeds, and returns its last error if it does not in
// time.
func eventually(f func() error) error {
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(10 * time.Millisecond) {
		err := f()
		if err == nil || errors.Is(err, errEnded) || time.Now().After(deadline) {
			return err
		}
	}
}

// shared starts the server that the tests of this binary share.
var shared = sync.OnceValues(func() (*Server, error) { return startNew(nil, []string{"max_connections=200"}) })

// empty has the databases of the shared server that no test uses now.
var empty = make(chan string, 1000)

// Database returns the URL of an empty database on a server that all tests of this binary
// share. When the test ends, the database is emptied for another test: to create and to
// drop one takes many times as long.
func Database(t testing.TB) string {
	t.Helper()
	require(t)
	s, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	var name string
	select {
	case name = <-empty:
	default:
		name = fmt.Sprintf("test%d_%d", os.Getpid(), count.Add(1))
		Exec(t, s.URL("postgres"), "CREATE DATABASE "+name)
	}
	t.Cleanup(func() {
		// In one connection: to make one takes longer than these statements.
		Exec(t, s.URL(name)+"&default_transaction_read_only=off",
			"ALTER DATABASE "+name+" RESET ALL",
			"SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity WHERE datname = '"+name+"' AND pid <> pg_backend_pid()",
			dropSchemas, "CREATE SCHEMA public", "GRANT USAGE ON SCHEMA public TO PUBLIC")
		empty <- name
	})
	return s.URL(name)
}

// dropSchemas drops all schemas except those of PostgreSQL itself.
const dropSchemas = `DO $$ DECLARE name text; BEGIN
	FOR name IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' LOOP
		EXECUTE format('DROP SCHEMA %I CASCADE', name);
	END LOOP;
END $$`

// Exec runs statements in the database with a URL.
func Exec(t testing.TB, url string, statements ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, text := range statements {
		if _, err := conn.Exec(ctx, text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}

// poolers has the addresses of the poolers of this test binary, by the address of their server.
var poolers sync.Map

// Pooled returns the URL of a database through PgBouncer in transaction mode, which the
// tests of a server share. Without PgBouncer on the machine, the test is skipped, or fails
// if the environment has GATEHOUSE_REQUIRE_SERVERS=1.
func Pooled(t testing.TB, databaseURL string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/pgbouncer"); err != nil { // PATH of a user often lacks it
			testenv.Missing(t, "pgbouncer")
		}
	}
	_, server, _ := strings.Cut(databaseURL, "@")
	server, _, _ = strings.Cut(server, "/")
	start, _ := poolers.LoadOrStore(server, sync.OnceValues(func() (string, error) { return startPooler(program, databaseURL) }))
	addr, err := start.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(databaseURL, server, addr, 1)
}
