package sqlite_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

func TestOpenRefuses(t *testing.T) {
	for _, tt := range []struct {
		name    string
		prepare func(t *testing.T, path string)
		want    string // in the error
	}{
		{"text", func(t *testing.T, path string) {
			writeFile(t, path, []byte(strings.Repeat("listen: 127.0.0.1:8080\n", 100)))
		}, "it is not a SQLite database"},
		{"short text", func(t *testing.T, path string) {
			writeFile(t, path, []byte("hello"))
		}, "it is not a SQLite database"},
		{"a database of another program", func(t *testing.T, path string) {
			execute(t, raw(t, path), "CREATE TABLE bookmarks (url TEXT)")
		}, "it belongs to another program"},
		{"a marked database of another program", func(t *testing.T, path string) {
			execute(t, raw(t, path), "PRAGMA application_id = 1")
		}, "it belongs to another program"},
		{"limiter state", func(t *testing.T, path string) {
			u, err := sqlite.OpenUsage(t.Context(), path, sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := u.Close(); err != nil {
				t.Fatal(err)
			}
		}, "it belongs to another program"},
		{"a newer version", func(t *testing.T, path string) {
			open(t, path, sqlite.Options{}).Close()
			execute(t, raw(t, path), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, TRUE)")
		}, "a newer version of this program wrote it (schema 99, this version knows "},
		{"a trigger", func(t *testing.T, path string) {
			open(t, path, sqlite.Options{}).Close()
			execute(t, raw(t, path), "CREATE TRIGGER spy AFTER INSERT ON pets BEGIN DELETE FROM keys; END")
		}, "trigger spy does not belong to this program"},
		{"a trigger in an older version", func(t *testing.T, path string) {
			open(t, path, sqlite.Options{}).Close()
			execute(t, raw(t, path), append(toVersion6, "CREATE TRIGGER spy AFTER INSERT ON pets BEGIN DELETE FROM keys; END")...)
		}, "trigger spy does not belong to this program"},
		{"a database of another program with a view", func(t *testing.T, path string) {
			execute(t, raw(t, path), "CREATE VIEW spy AS SELECT 1")
		}, "it belongs to another program"},
		{"a damaged file", func(t *testing.T, path string) {
			open(t, path, sqlite.Options{}).Close()
			content := readFile(t, path)
			for i := 100; i < 4096; i++ {
				content[i] = 0xff
			}
			writeFile(t, path, content)
		}, "it is damaged; restore it from a backup"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := tempDatabase(t)
			tt.prepare(t, path)
			before := readFile(t, path)

			s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
			if err == nil {
				s.Close()
				t.Fatalf("Open succeeded, want an error")
			}
			if !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("Open = %v, want it to name the file and say %q", err, tt.want)
			}
			if !bytes.Equal(before, readFile(t, path)) {
				t.Errorf("Open changed the file that it refused")
			}
		})
	}
}

func TestOpenRefusesPlaces(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct{ name, path, want string }{
		{"no name", "", "the path of the database is empty"},
		{"a folder", dir, "it is not a regular file"},
		{"a folder that does not exist", filepath.Join(dir, "data", "pets.db"), "the directory " + filepath.Join(dir, "data") + " does not exist"},
	} {
		s, err := sqlite.Open(t.Context(), tt.path, sqlite.Options{})
		if err == nil {
			s.Close()
			t.Errorf("%s: Open succeeded, want an error", tt.name)
		} else if !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Open = %v, want it to say %q", tt.name, err, tt.want)
		}
	}
}

func TestOpenAcceptsAnyFileName(t *testing.T) {
	for _, name := range []string{
		":memory:", "file:pets.db", "with space", "a?mode=memory", "50%", "%41", "a#b", "a;b&c=d", "größe.db", "-", "'",
	} {
		if runtime.GOOS == "windows" && strings.ContainsAny(name, `:?`) {
			continue // no file can be called so
		}
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			s := open(t, path, sqlite.Options{})
			want, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
			if err != nil {
				t.Fatalf("CreatePet = %v", err)
			}
			s.Close()
			if info, err := os.Stat(path); err != nil || info.Size() == 0 {
				t.Fatalf("there is no database in a file of that name: %v", err)
			}
			if got, err := open(t, path, sqlite.Options{}).Pet(t.Context(), want.ID); err != nil || got != want {
				t.Errorf("Pet after reopening = %+v, %v, want %+v", got, err, want)
			}
		})
	}
}

func TestOpenMakesAPrivateFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no Unix permissions on Windows")
	}
	path := tempDatabase(t)
	open(t, path, sqlite.Options{})
	for _, file := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(file)
		if err != nil {
			t.Errorf("while the database is open: %v", err)
		} else if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600: it tells who has keys", file, info.Mode().Perm())
		}
	}
}

func TestCloseLeavesOneFile(t *testing.T) {
	path := tempDatabase(t)
	s := open(t, path, sqlite.Options{})
	if _, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("after Close the folder holds %v, want the database alone, fit to be copied", entries)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for want, o := range map[string]sqlite.Options{
		"Options.BusyTimeout": {BusyTimeout: 1},
	} {
		path := tempDatabase(t)
		if _, err := sqlite.Open(t.Context(), path, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open with %+v = %v, want an error that names %s", o, err, want)
		}
		if _, err := sqlite.OpenUsage(t.Context(), path, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("OpenUsage with %+v = %v, want an error that names %s", o, err, want)
		}
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("a file was made for options that are refused")
		}
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, fs.FileMode(0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestIDsAreNotUsedAgain(t *testing.T) {
	path := tempDatabase(t)
	s := open(t, path, sqlite.Options{})
	var last store.Pet
	for range 3 {
		var err error
		if last, err = s.CreatePet(t.Context(), store.NewPet{Name: "Rex"}); err != nil {
			t.Fatal(err)
		}
	}
	execute(t, raw(t, path), "DELETE FROM pets")
	next, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
	if err != nil || next.ID <= last.ID {
		t.Errorf("the pet after one that was deleted has ID %d (%v), want one over %d", next.ID, err, last.ID)
	}
}
