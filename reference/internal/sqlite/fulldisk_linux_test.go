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

func TestFullDisk(t *testing.T) {
	dir := mount(t)
	path := filepath.Join(dir, "pets.db")
	s := open(t, path, sqlite.Options{})

	acknowledged := int64(0)
	var full error
	for full == nil {
		var pet store.Pet
		if pet, full = s.CreatePet(t.Context(), store.NewPet{Name: strings.Repeat("x", 255)}); full == nil {
			acknowledged = pet.ID
		}
	}
	if !errors.Is(full, store.ErrUnavailable) || !strings.Contains(full.Error(), "the disk is full") {
		t.Errorf("CreatePet on a full disk = %v, want an error that wraps ErrUnavailable and says so", full)
	}
	if acknowledged == 0 {
		t.Fatal("nothing was acknowledged before the disk was full")
	}
	check := func(s *sqlite.Store) {
		t.Helper()
		stored := int64(0)
		for q := (store.ListQuery{Limit: store.MaxList}); ; {
			pets, more, err := s.ListPets(t.Context(), q)
			if err != nil {
				t.Fatalf("ListPets on a full disk = %v", err)
			}
			for _, p := range pets {
				if p.ID != stored+1 {
					t.Fatalf("pet %d follows pet %d", p.ID, stored)
				}
				stored, q.After = p.ID, p.ID
			}
			if !more {
				break
			}
		}
		if stored != acknowledged {
			t.Errorf("%d pets are stored, %d were acknowledged", stored, acknowledged)
		}
	}
	check(s)
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping on a full disk = %v", err)
	}

	// A larger disk is all it takes.
	if err := syscall.Mount("none", dir, "tmpfs", syscall.MS_REMOUNT, "size=8m"); err != nil {
		t.Fatal(err)
	}
	pet, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
	if err != nil {
		t.Errorf("CreatePet when there is room again = %v", err)
	}
	if pet.ID <= acknowledged {
		t.Errorf("the next pet has ID %d, want one over %d", pet.ID, acknowledged)
	}
	acknowledged = pet.ID
	if err := s.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	checkIntegrity(t, path)
	again := open(t, path, sqlite.Options{})
	check(again)
	again.Close() // before the file system goes
}

func TestOpenOnAFullDisk(t *testing.T) {
	dir := mount(t)
	path := filepath.Join(dir, "pets.db")
	if err := open(t, path, sqlite.Options{}).Close(); err != nil {
		t.Fatal(err)
	}
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
	if err := syscall.Mount("none", dir, "tmpfs", syscall.MS_REMOUNT, fmt.Sprint("size=", size)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "pets.db")
	sqlite.MigrateTo(t, path, 5)
	db := raw(t, path)
	execute(t, db, `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000)
		INSERT INTO pets (name, category_id, status) SELECT printf('%0255d', i), 1, 'sold' FROM n`)
	db.Close()
	before := readFile(t, path)
	// There is room for the log, and not for the copy of 1,000 pets.
	if err := os.WriteFile(filepath.Join(dir, "fill"), make([]byte, size-len(before)-128<<10), 0o600); err != nil {
		t.Fatal(err)
	}
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
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
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
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if failed < 4 {
		t.Errorf("a restore failed %d times, want at several places", failed)
	}
}

// fillUp leaves some room on the small file system of a directory.
func fillUp(t *testing.T, dir string, room int) {
	t.Helper()
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "fill"), make([]byte, int(fs.Bavail)*int(fs.Bsize)-room), 0o600); err != nil {
		t.Fatal(err)
	}
}
