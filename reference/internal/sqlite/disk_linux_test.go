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

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// mount mounts a file system of a few hundred kilobytes, where that is allowed.
func mount(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=512k"); err != nil {
		t.Skipf("mounting a small file system: %v (it takes root)", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

func TestOpenOnAFullDisk(t *testing.T) {
	dir := mount(t)
	path := filepath.Join(dir, "pets.db")
	must(t, open(t, path, sqlite.Options{}).Close())
	// It ends with an error when the disk is full.
	_ = os.WriteFile(filepath.Join(dir, "fill"), make([]byte, 1<<20), 0o600)
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err == nil {
		s.Close()
	}
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("Open on a full disk = %v, want an error that wraps ErrUnavailable and says so", err)
	}
}

// A file that cannot be copied is not upgraded.
func TestUpgradeOnAFullDisk(t *testing.T) {
	dir := mount(t)
	const size = 4 << 20
	must(t, syscall.Mount("none", dir, "tmpfs", syscall.MS_REMOUNT, fmt.Sprint("size=", size)))
	path := filepath.Join(dir, "pets.db")
	open(t, path, sqlite.Options{}).Close()
	sqlite.AddMigrations(t, addToys)
	db := raw(t, path)
	execute(t, db, `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000)
		INSERT INTO pets (name, category_id, status) SELECT printf('%0255d', i), 1, 'sold' FROM n`)
	db.Close()
	before := readFile(t, path)
	// There is room for the log, and not for the copy of 1,000 pets.
	must(t, os.WriteFile(filepath.Join(dir, "fill"), make([]byte, size-len(before)-128<<10), 0o600))
	upgraded := false
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{OnUpgrade: func(sqlite.Upgrade) { upgraded = true }})
	if err == nil {
		s.Close()
	}
	want := fmt.Sprintf("upgrade database %s: it is copied first, and that failed, so nothing was changed: ", path)
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "the disk is full") || upgraded {
		t.Errorf("Open = %v, want an error that wraps ErrUnavailable and says %q", err, want)
	}
	if !bytes.Equal(before, readFile(t, path)) {
		t.Error("the file was changed")
	}
	if left, _ := filepath.Glob(path + ".v*"); len(left) > 0 {
		t.Errorf("%v is left of the copy that failed", left)
	}
}

func TestBackupToAFullDisk(t *testing.T) {
	path, _ := filled(t)
	dir := mount(t)
	_ = os.WriteFile(filepath.Join(dir, "fill"), make([]byte, 480<<10), 0o600)
	_, err := sqlite.Backup(t.Context(), path, filepath.Join(dir, "backup.db"), sqlite.Options{})
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "the disk is full") || !strings.Contains(err.Error(), dir) {
		t.Errorf("Backup to a full disk = %v, want an error that wraps ErrUnavailable, names the file and says so", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "backup*")); len(left) > 0 {
		t.Errorf("%v is left of a backup that failed", left)
	}
}

// A restore for which there is no room changes nothing, wherever it fails.
func TestRestoreOnAFullDisk(t *testing.T) {
	path, _ := filled(t)
	saved := backup(t, path)
	failed, succeeded := 0, 0
	for room := 16 << 10; succeeded == 0; room += 16 << 10 {
		dir := mount(t)
		path := filepath.Join(dir, "pets.db")
		s := open(t, path, sqlite.Options{})
		for range 5 {
			addPet(t, s, strings.Repeat("x", 255))
		}
		must(t, s.Close())
		fillUp(t, dir, room)
		_, err := sqlite.Restore(t.Context(), saved, path, operator, later, sqlite.Options{})
		want := 5
		if err == nil {
			succeeded, want = succeeded+1, 1
		} else {
			if failed++; !strings.Contains(err.Error(), "the disk is full") && !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("with %d bytes of room, Restore = %v, want that the disk is full", room, err)
			}
			for _, pattern := range []string{".restore-*", ".replaced-*", "*.partial"} {
				if left, _ := filepath.Glob(path + pattern); len(left) > 0 {
					t.Errorf("%v is left of a restore that failed", left)
				}
			}
		}
		os.Remove(filepath.Join(dir, "fill"))
		s = open(t, path, sqlite.Options{})
		if pets, _, err := s.ListPets(t.Context(), store.ListQuery{Limit: 10}); err != nil || len(pets) != want {
			t.Errorf("with %d bytes of room there are %d pets (%v), want %d", room, len(pets), err, want)
		}
		must(t, s.Close())
	}
	if failed < 4 {
		t.Errorf("a restore failed %d times, want at several places", failed)
	}
}

// fillUp leaves some room on the small file system of a directory.
func fillUp(t *testing.T, dir string, room int) {
	t.Helper()
	var fs syscall.Statfs_t
	must(t, syscall.Statfs(dir, &fs))
	must(t, os.WriteFile(filepath.Join(dir, "fill"), make([]byte, int(fs.Bavail)*int(fs.Bsize)-room), 0o600))
}

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
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
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
				must(t, os.Chmod(path, tt.file))
			}
			must(t, os.Chmod(dir, tt.dir))
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
	must(t, errors.Join(os.Chown(path, 65534, 65533), os.Chmod(path, 0o640)))
	restore(t, saved, path, later)
	info, err := os.Stat(path)
	must(t, err)
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
	must(t, errors.Join(os.Chmod(path, 0o444), os.Chmod(dir, 0o777)))
	for _, name := range []string{"open", "back up"} {
		out, err := runAsNobody(t, name, path)
		if err == nil || !strings.Contains(string(out), "it cannot be opened or written; check the rights of this user") {
			t.Errorf("%s: %v: %s, want that the file cannot be written", name, err, out)
		}
		checkLeft(t, path, "pets.db")
	}
}
