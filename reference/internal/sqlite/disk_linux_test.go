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

// mount mounts a file system of some kilobytes, where that is allowed.
func mount(t *testing.T, kilobytes int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, fmt.Sprintf("size=%dk", kilobytes)); err != nil {
		t.Skipf("mounting a small file system: %v (it takes root)", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

// fillUp leaves some room on the small file system of a directory, in bytes.
func fillUp(t *testing.T, dir string, room int) {
	t.Helper()
	var fs syscall.Statfs_t
	must(t, syscall.Statfs(dir, &fs))
	must(t, os.WriteFile(filepath.Join(dir, "fill"), make([]byte, max(0, int(fs.Bavail)*int(fs.Bsize)-room)), 0o600))
}

// On a full disk, what cannot be done says so, and leaves nothing of what it began. A file that
// cannot be copied is not upgraded.
func TestFullDisk(t *testing.T) {
	saved, _ := filled(t)
	dir, small := mount(t, 4096), mount(t, 512)
	path := filepath.Join(small, "pets.db")
	writeFile(t, path, readFile(t, saved))
	older := filepath.Join(dir, "pets.db")
	writeFile(t, older, readFile(t, saved))
	harmBySQL(strings.Replace(manyPets, "LIMIT 2000", "LIMIT 10000", 1))(t, older)
	before := readFile(t, older)
	fillUp(t, dir, 128<<10) // for the log, and not for a copy of 10,000 pets
	fillUp(t, small, 0)
	_, openErr := sqlite.Open(t.Context(), path, sqlite.Options{})
	_, backupErr := sqlite.Backup(t.Context(), saved, filepath.Join(small, "backup.db"))
	sqlite.AddMigrations(t, addToys)
	upgraded := false
	_, upgradeErr := sqlite.Open(t.Context(), older, sqlite.Options{OnUpgrade: func(sqlite.Upgrade) { upgraded = true }})
	for want, err := range map[string]error{
		path:                              openErr,
		filepath.Join(small, "backup.db"): backupErr,
		fmt.Sprintf("upgrade database %s: it is copied first, and that failed, so nothing was changed: ", older): upgradeErr,
	} {
		if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "the disk is full") {
			t.Errorf("on a full disk the error is %v, want ErrUnavailable, that it says so, and %q", err, want)
		}
	}
	if upgraded || !bytes.Equal(before, readFile(t, older)) {
		t.Error("the file was changed")
	}
	if left, _ := filepath.Glob(filepath.Join(small, "backup*")); len(left) > 0 {
		t.Errorf("%v is left of a backup that failed", left)
	}
	checkLeft(t, older, "fill", "pets.db")
}

// A store whose disk becomes full refuses what it cannot keep, serves what it has, and goes on by
// itself once there is room.
func TestADiskThatBecomesFull(t *testing.T) {
	dir := mount(t, 512)
	s := open(t, filepath.Join(dir, "pets.db"), sqlite.Options{})
	fillUp(t, dir, 64<<10)
	stored := 0
	for {
		_, err := s.CreatePet(t.Context(), store.NewPet{Name: strings.Repeat("x", 255)})
		if err == nil {
			stored++
			continue
		}
		if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "the disk is full") || stored == 0 {
			t.Errorf("after %d pets, CreatePet on a full disk = %v, want ErrUnavailable and that it says so", stored, err)
		}
		break
	}
	pets, _, err := s.ListPets(t.Context(), store.ListQuery{Limit: store.MaxList})
	if err := errors.Join(err, s.Ping(t.Context())); err != nil || len(pets) != stored {
		t.Errorf("on a full disk there are %d pets (%v), want the %d that were acknowledged", len(pets), err, stored)
	}
	must(t, os.Remove(filepath.Join(dir, "fill")))
	addPet(t, s, "Rex")
}

// A restore for which there is no room changes nothing, wherever it fails.
func TestRestoreOnAFullDisk(t *testing.T) {
	path, _ := filled(t)
	saved := backup(t, path)
	failed, succeeded := 0, 0
	for room := 16 << 10; succeeded == 0; room += 16 << 10 {
		dir := mount(t, 512)
		path := filepath.Join(dir, "pets.db")
		s := open(t, path, sqlite.Options{})
		for range 5 {
			addPet(t, s, strings.Repeat("x", 255))
		}
		must(t, s.Close())
		fillUp(t, dir, room)
		_, err := sqlite.Restore(t.Context(), saved, path, operator, later)
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

// A user that may not write the database is told so, and leaves no files beside it, which would
// lock the server out.
func TestReadOnlyPlaces(t *testing.T) {
	for _, tt := range []struct {
		name, program string
		file          os.FileMode // zero: there is none
		dir           os.FileMode
		want          string
	}{
		{"a new file in a read-only folder", "open", 0, 0o555, "cannot write in the directory"},
		{"a read-only file", "open", 0o444, 0o777, "it cannot be opened or written; check the rights of this user"},
		{"a backup of a read-only file", "back up", 0o444, 0o777, "it cannot be opened or written; check the rights of this user"},
		{"a file in a read-only folder", "open", 0o666, 0o555, "it cannot be opened or written"},
		{"a file of somebody else", "open", 0o600, 0o777, "it cannot be opened or written"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.file == 0o600 && os.Geteuid() != 0 {
				t.Skip("only root can make a file of somebody else")
			}
			dir := sharedDir(t)
			path, left := filepath.Join(dir, "pets.db"), []string(nil)
			if tt.file != 0 {
				open(t, path, sqlite.Options{}).Close()
				must(t, os.Chmod(path, tt.file))
				left = []string{"pets.db"}
			}
			must(t, os.Chmod(dir, tt.dir))
			t.Cleanup(func() { os.Chmod(dir, 0o755) })
			out, err := runAsNobody(t, tt.program, path)
			if err == nil || !strings.Contains(string(out), tt.want) || !strings.Contains(string(out), path) {
				t.Errorf("%s: %v: %s, want that it names the file and says %q", tt.program, err, out, tt.want)
			}
			checkLeft(t, path, left...)
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
