package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// A file that is gone swallows every write without an error. The server must not
// acknowledge one.
func TestDeletedAndReplacedFilesAreNoticed(t *testing.T) {
	replace := func(t *testing.T, path string) {
		t.Helper()
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+".new", content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(t *testing.T, path string) {
		t.Helper()
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name, suffix string
		harm         func(*testing.T, string)
		want         string
	}{
		{"deleted", "", remove, "was deleted while this process has it open"},
		{"replaced", "", replace, "was replaced while this process has it open"},
		{"log deleted", "-wal", remove, "was deleted while this process has it open"},
		{"log replaced", "-wal", replace, "was replaced while this process has it open"},
		{"index of the log deleted", "-shm", remove, "was deleted while this process has it open"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pets.db")
			s := open(t, path, sqlite.Options{})
			rex := store.NewPet{Name: "Rex"}
			if _, err := s.CreatePet(t.Context(), rex); err != nil {
				t.Fatal(err)
			}
			saved := path + ".saved"
			if err := os.Link(path+tt.suffix, saved); err != nil {
				t.Fatal(err)
			}
			tt.harm(t, path+tt.suffix)
			_, err := s.CreatePet(t.Context(), rex)
			for doing, err := range map[string]error{"CreatePet": err, "Ping": s.Ping(t.Context())} {
				if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "put the original file back, or restart") {
					t.Errorf("%s = %v, want ErrUnavailable, that the file %s, and what to do", doing, err, tt.want)
				}
			}
			if err := os.Rename(saved, path+tt.suffix); err != nil {
				t.Fatal(err)
			}
			if _, err := s.CreatePet(t.Context(), rex); err != nil {
				t.Errorf("with the original file back, CreatePet = %v", err)
			}
			if err := s.Ping(t.Context()); err != nil {
				t.Errorf("with the original file back, Ping = %v", err)
			}
		})
	}
}

func TestDeletedUsageFileIsNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "usage")
	u, err := sqlite.OpenUsage(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := u.SaveUsage(t.Context(), []byte("header"), nil); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("SaveUsage to a deleted file = %v, want ErrUnavailable", err)
	}
}

// SQLite follows a symbolic link to find the log, and so must the watch on it.
func TestDeletedFilesBehindASymbolicLinkAreNoticed(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real.db"), filepath.Join(dir, "link.db")
	open(t, real, sqlite.Options{}).Close()
	if err := os.Symlink(real, link); err != nil {
		t.Skipf("skipped: symbolic links cannot be made here: %v", err)
	}
	if got, want := sqlite.UsagePath(link), sqlite.UsagePath(real); got != want {
		t.Errorf("UsagePath by the link is %s, want %s", got, want)
	}
	s := open(t, link, sqlite.Options{})
	if err := os.Rename(real+"-wal", real+"-wal.moved"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("CreatePet without the log = %v, want ErrUnavailable", err)
	}
	if err := os.Rename(real+"-wal.moved", real+"-wal"); err != nil {
		t.Fatal(err)
	}
}
