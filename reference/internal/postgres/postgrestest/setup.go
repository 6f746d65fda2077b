//go:build unix

package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/animalstore/gatehouse/internal/testenv"
)

// binaries returns the directory with PostgreSQL's binaries, or "". PATH often has only
// the clients, so initdb is what counts.
func binaries() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(real) // where all of them are
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) }))
}

// version returns 15 for /usr/lib/postgresql/15/bin/initdb.
func version(initdb string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(initdb))))
	return n
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
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if uidErr == nil && gidErr == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	return &syscall.Credential{Uid: 65534, Gid: 65534}
}

// command returns a command of PostgreSQL that runs as the unprivileged user.
func command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(binaries(), name), args...)
	// Variables of the environment must not matter, such as PGHOST.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "PGPASSWORD=" + password, "LC_ALL=C", "TZ=UTC"}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: unprivileged()}
	return cmd
}

const (
	// user and password are those of every server. The password is easy to find in
	// what a test prints.
	userName = "postgres"
	password = "pass-Wort-4711"
)

// A dataFolder is a directory that is removed when this process ends, however it ends.
type dataFolder struct {
	path  string
	alive io.Closer // closed by the end of this process, and kept from the garbage collector here
}

// folder returns the directory with the data of all servers of this test binary.
var folder = sync.OnceValues(makeFolder)

func makeFolder() (f dataFolder, err error) {
	if f.path, err = os.MkdirTemp("", "postgrestest"); err != nil {
		return f, err
	}
	if c := unprivileged(); c != nil {
		if err := os.Chown(f.path, int(c.Uid), int(c.Gid)); err != nil {
			return f, err
		}
	}
	// A shared server has no test at whose end it could be removed. The shell reads until
	// the end of this process closes the pipe. Then the servers may still be stopping.
	janitor := exec.Command("/bin/sh", "-c", `read _; for i in 1 2 3 4 5 6 7 8 9; do rm -rf "$1" && exit; sleep 1; done`, "sh", f.path)
	if f.alive, err = janitor.StdinPipe(); err != nil {
		return f, err
	}
	janitor.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // survives an interrupt of the test
	return f, janitor.Start()
}

// writeFile writes a file that the user of the servers can read, whatever the umask is.
func writeFile(path, text string) error {
	return errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, 0o644))
}

// template returns the data directory of a server that has never run. A copy of it is
// ready ten times sooner than initdb.
var template = sync.OnceValues(makeTemplate)

func makeTemplate() (string, error) {
	base, err := folder()
	if err != nil {
		return "", err
	}
	dir, passwordFile := filepath.Join(base.path, "template"), filepath.Join(base.path, "password")
	if err := writeFile(passwordFile, password+"\n"); err != nil {
		return "", err
	}
	args := []string{
		"--pgdata", dir, "--username", userName, "--pwfile", passwordFile, "--auth", "scram-sha-256",
		"--encoding", "UTF8", "--no-locale", "--no-sync", "--no-instructions",
	}
	// Texts are ordered as a person would, so that a test notices a statement that needs
	// the order of bytes and does not say so. Old versions lack that.
	icu := append([]string{"--locale-provider", "icu", "--icu-locale", "en-US"}, args...)
	if command("initdb", icu...).Run() == nil {
		return dir, nil
	}
	if out, err := command("initdb", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("initdb: %w: %s", err, out)
	}
	return dir, nil
}

// newData returns a new data directory.
func newData() (string, error) {
	from, err := template()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(filepath.Dir(from), "data"+strconv.FormatInt(count.Add(1), 10))
	if out, err := exec.Command("cp", "-a", from, dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("copy the template: %w: %s", err, out)
	}
	return dir, nil
}

// shared starts the server that the tests of this binary share.
var shared = sync.OnceValues(func() (*Server, error) {
	data, err := newData()
	if err != nil {
		return nil, err
	}
	return start(nil, data, []string{"max_connections=200"})
})

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
		name = "test" + strconv.Itoa(os.Getpid()) + "_" + strconv.FormatInt(count.Add(1), 10)
		Exec(t, s.URL("postgres"), "CREATE DATABASE "+name)
	}
	t.Cleanup(func() {
		Exec(t, s.URL("postgres"),
			"ALTER DATABASE "+name+" RESET ALL",
			"SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity WHERE datname = '"+name+"'")
		Exec(t, s.URL(name), dropSchemas, "CREATE SCHEMA public", "GRANT USAGE ON SCHEMA public TO PUBLIC")
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

// empty has the databases of the shared server that no test uses now.
var empty = make(chan string, 1000)

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

// poolers has the addresses of the poolers of this test binary, by that of their server.
var poolers sync.Map

// Pooled returns the URL of a database through PgBouncer in transaction mode, which the
// tests of a server share. Without PgBouncer on the machine, the test is skipped, or fails
// if the environment has GATEHOUSE_REQUIRE_SERVERS=1.
func Pooled(t testing.TB, databaseURL string) string {
	t.Helper()
	program := pooler()
	if program == "" {
		testenv.Missing(t, "pgbouncer")
	}
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	server := net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	start, _ := poolers.LoadOrStore(server, sync.OnceValues(func() (string, error) { return startPooler(program, config) }))
	addr, err := start.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(databaseURL, server, addr, 1)
}

// startPooler starts PgBouncer in front of a server, and returns its address. It runs until
// this process ends.
func startPooler(program string, config *pgx.ConnConfig) (string, error) {
	addr, err := freeAddr()
	if err != nil {
		return "", err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	base, err := folder()
	if err != nil {
		return "", err
	}
	file := filepath.Join(base.path, "pooler"+strconv.FormatInt(count.Add(1), 10))
	if err := writeFile(file, fmt.Sprintf(`[databases]
* = host=%s port=%d user=%s password=%s
[pgbouncer]
listen_addr = %s
listen_port = %s
unix_socket_dir =
pool_mode = transaction
default_pool_size = 8
max_client_conn = 1000
server_login_retry = 1
auth_type = any
`, config.Host, config.Port, config.User, config.Password, host, port)); err != nil {
		return "", err
	}
	cmd := exec.Command(program, "-q", file)
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: unprivileged()}
	dieWithParent(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return "", err
	}
	return addr, eventually(func() error {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
}

// pooler returns the path of PgBouncer, or "". PATH of a user often lacks it.
func pooler() string {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}
