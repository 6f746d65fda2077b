package sqlite_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
)

// runAsNobody runs a program without the rights of root.
func runAsNobody(t *testing.T, name, path string) (out []byte, err error) {
	t.Helper()
	cmd := program(t, name, path)
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		cmd.Path = copyExecutable(t, cmd.Path)
	}
	out, err = cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Skipf("skipped: nothing can run as another user here: %v", err)
	}
	return out, err
}

// sharedDir is a folder that nobody can reach.
func sharedDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sqlite-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestReadOnlyPlaces(t *testing.T) {
	for _, tt := range []struct {
		name    string
		file    os.FileMode // zero: there is none
		dir     os.FileMode
		wantDir bool // the error names the directory
	}{
		{"a new file in a read-only folder", 0, 0o555, true},
		{"a read-only file", 0o444, 0o777, false},
		{"a file in a read-only folder", 0o666, 0o555, false},
		{"a file of somebody else", 0o600, 0o777, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.file == 0o600 && os.Geteuid() != 0 {
				t.Skip("only root can make a file of somebody else")
			}
			dir := sharedDir(t)
			path := filepath.Join(dir, "pets.db")
			if tt.file != 0 {
				open(t, path, sqlite.Options{}).Close()
				if err := os.Chmod(path, tt.file); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(dir, tt.dir); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.Chmod(dir, 0o755) })

			out, err := runAsNobody(t, "open", path)
			if err == nil {
				t.Fatalf("Open succeeded, want an error")
			}
			want := fmt.Sprintf("database %s: it cannot be", path)
			if tt.wantDir {
				want = fmt.Sprintf("create database %s: cannot write in the directory %s: permission denied", path, dir)
			}
			if !bytes.Contains(out, []byte(want)) {
				t.Errorf("Open said %q, want %q", out, want)
			}
		})
	}
}

// copyExecutable makes a copy of the test binary that nobody can reach, too.
func copyExecutable(t *testing.T, path string) string {
	t.Helper()
	copied := filepath.Join(sharedDir(t), "test")
	err := os.WriteFile(copied, readFile(t, path), 0o700)
	if err := errors.Join(err, os.Chmod(copied, 0o755)); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	return copied
}

// A restored file belongs to the user of the one that it replaces, whoever restores it.
func TestRestoreKeepsTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a file of somebody else")
	}
	path, _ := filled(t)
	saved := backup(t, path)
	if err := errors.Join(os.Chown(path, 65534, 65533), os.Chmod(path, 0o640)); err != nil {
		t.Fatal(err)
	}
	restore(t, saved, path)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if stat := info.Sys().(*syscall.Stat_t); stat.Uid != 65534 || stat.Gid != 65533 || info.Mode().Perm() != 0o640 {
		t.Errorf("after a restore, the owner is %d:%d and the mode %v, want 65534:65533 and 0640", stat.Uid, stat.Gid, info.Mode().Perm())
	}
}

// Commands of a user that may not write the database leave no files of that user beside
// it, which would lock the server out.
func TestAUserWhoMayNotWriteLeavesNothing(t *testing.T) {
	dir := sharedDir(t)
	path := filepath.Join(dir, "pets.db")
	open(t, path, sqlite.Options{}).Close()
	u, err := sqlite.OpenUsage(t.Context(), sqlite.UsagePath(path), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(
		u.SaveUsage(t.Context(), []byte("h"), []memory.Record{{Key: 1, Data: []byte("x"), Expires: 4_000_000_000}}),
		u.Close(),
		os.Chmod(path, 0o444), os.Chmod(sqlite.UsagePath(path), 0o444), os.Chmod(dir, 0o777),
	); err != nil {
		t.Fatal(err)
	}
	for name, works := range map[string]bool{"open": false, "back up": false, "check": true, "check the usage": true} {
		out, err := runAsNobody(t, name, path)
		if works != (err == nil) || !works && !strings.Contains(string(out), "it cannot be written; check that this user may write to the file") {
			t.Errorf("%s: %v: %s, want that it works: %v", name, err, out, works)
		}
		checkLeft(t, path, "pets.db", "pets.db-usage")
	}
}
