package main_test

import (
	"bytes"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	_ "modernc.org/sqlite" // registers the driver

	"github.com/animalstore/gatehouse/internal/testenv"
)

// refused runs a command that must fail with the exit code 1, and returns what it
// says.
func refused(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = environment()
	switch err := cmd.Run(); {
	case cmd.ProcessState != nil:
	case cmd.SysProcAttr != nil:
		t.Skipf("skipped: nothing can run as another user here: %v", err)
	default:
		t.Fatal(err)
	}
	if code := cmd.ProcessState.ExitCode(); code != 1 || stdout.Len() > 0 {
		t.Errorf("%v ended with exit code %d and printed %q, want 1 and nothing\n%s", cmd, code, &stdout, &stderr)
	}
	return stderr.String()
}

func TestALockedDatabaseIsWaitedForAndThenRefused(t *testing.T) {
	testenv.Long(t, "waits for a lock")
	t.Parallel()
	dir := t.TempDir()
	petstore(t, dir, "keys", "create", "--name=n", "--owner=o", "--plan=free")
	db, err := sql.Open("sqlite", filepath.Join(dir, "petstore.db"))
	must(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}

	cmd := exec.CommandContext(t.Context(), "petstore", "keys", "create", "--name=n", "--owner=o", "--plan=free")
	cmd.Dir = dir
	const want = "petstore: create key: database petstore.db: database unavailable: another process locks the file for too long"
	if got := refused(t, cmd); !strings.HasPrefix(got, want) {
		t.Errorf("a key for a locked database: %q, want %q", got, want)
	}
	// What only reads does not wait.
	if list := petstore(t, dir, "keys", "list", "--json"); strings.Count(list, `"id"`) != 1 {
		t.Errorf("the keys are %s, want the one", list)
	}
}

// This one is not parallel: a program cannot be started while another test's new
// process still holds it open for writing.
func TestAReadOnlyFolderIsRefused(t *testing.T) {
	dir := reachable(t)
	program, err := exec.LookPath("petstore")
	must(t, err)
	if os.Geteuid() == 0 {
		// Root may write anywhere, so this runs as nobody, who has to reach the
		// program.
		binary, err := os.ReadFile(program)
		must(t, err)
		program = filepath.Join(reachable(t), "petstore")
		if err := errors.Join(os.WriteFile(program, binary, 0o700), os.Chmod(program, 0o755)); err != nil { // whatever the umask is
			t.Fatal(err)
		}
	}
	must(t, os.Chmod(dir, 0o555))
	t.Cleanup(func() { os.Chmod(dir, 0o755) })

	for _, args := range [][]string{
		{"serve", "--listen=127.0.0.1:0", "--admin-listen="},
		{"keys", "create", "--name=n", "--owner=o", "--plan=free"},
	} {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = dir
		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		want := "petstore: create database petstore.db: cannot write in the directory " + dir + ": permission denied\n"
		if got := refused(t, cmd); got != want {
			t.Errorf("%v in a read-only folder: %q, want %q", args, got, want)
		}
	}
}

// reachable is a folder that every user can reach.
func reachable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "petstore-test-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	return dir
}

func TestADeletedDatabaseIsNoticed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := roomyKey(t, dir, "ada")
	p := serve(t, dir)
	mustAsk(t, 201, "POST", p.api+"/v1/pets", key, pet)
	path := filepath.Join(dir, "petstore.db")
	must(t, os.Rename(path, path+".moved"))
	a := mustAsk(t, 503, "POST", p.api+"/v1/pets", key, pet)
	if a.header.Get("Retry-After") == "" || strings.Contains(string(a.body), "petstore.db") {
		t.Errorf("the answer has Retry-After %q and the body %s, want one and no file name", a.header.Get("Retry-After"), a.body)
	}
	if a := mustAsk(t, 503, "GET", p.admin+"/readyz", "", ""); !strings.Contains(string(a.body), "was deleted while this process has it open") {
		t.Errorf("readiness says %s, want that the file was deleted", a.body)
	}
	eventually(t, "the log says what to do", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, line := range p.log {
			for _, value := range line {
				if text, ok := value.(string); ok && strings.Contains(text, "put the original file back, or restart") {
					return true
				}
			}
		}
		return false
	})
	must(t, os.Rename(path+".moved", path))
	mustAsk(t, 201, "POST", p.api+"/v1/pets", key, pet)
	mustAsk(t, 200, "GET", p.admin+"/readyz", "", "")
	if err := p.stop(); err != nil {
		t.Error(err)
	}
}
