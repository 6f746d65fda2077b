//go:build unix

package postgrestest

import (
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
	err := tryToRun()
	switch {
	case err == nil:
	case os.Getenv("GATEHOUSE_REQUIRE_SERVERS") == "1":
		t.Fatalf("PostgreSQL does not run on this machine, and GATEHOUSE_REQUIRE_SERVERS=1: %v", err)
	default:
		t.Skipf("skipped: PostgreSQL does not run on this machine: %v", err)
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
