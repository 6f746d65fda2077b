package sqlite_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
	"github.com/animalstore/gatehouse/reference/internal/store/storetest"
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
		{"a newer version", func(t *testing.T, path string) {
			open(t, path, sqlite.Options{}).Close()
			execute(t, raw(t, path), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, TRUE)")
		}, "a newer version of this program wrote it (schema 99, this version knows "},
		{"a trigger", func(t *testing.T, path string) {
			open(t, path, sqlite.Options{}).Close()
			execute(t, raw(t, path), "CREATE TRIGGER spy AFTER INSERT ON pets BEGIN DELETE FROM keys; END")
		}, "its schema is not that of this program: trigger spy"},
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
		{"a folder", dir, "it is not a regular file"},
		{"a folder that does not exist", filepath.Join(dir, "data", "pets.db"), "cannot write in the directory " + filepath.Join(dir, "data")},
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
			must(t, err)
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
	_, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
	must(t, err)
	must(t, s.Close())
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("after Close the folder holds %v, want the database alone, fit to be copied", entries)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	must(t, err)
	return content
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	must(t, os.WriteFile(path, content, fs.FileMode(0o600)))
}

func TestIDsAreNotUsedAgain(t *testing.T) {
	path := tempDatabase(t)
	s := open(t, path, sqlite.Options{})
	var last store.Pet
	for range 3 {
		var err error
		last, err = s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
		must(t, err)
	}
	execute(t, raw(t, path), "DELETE FROM pets")
	next, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
	if err != nil || next.ID <= last.ID {
		t.Errorf("the pet after one that was deleted has ID %d (%v), want one over %d", next.ID, err, last.ID)
	}
}

// A file that is gone swallows every write without an error. The server must not
// acknowledge one.
func TestDeletedAndReplacedFilesAreNoticed(t *testing.T) {
	replace := func(t *testing.T, path string) {
		t.Helper()
		writeFile(t, path+".new", readFile(t, path))
		must(t, os.Rename(path+".new", path))
	}
	remove := func(t *testing.T, path string) {
		t.Helper()
		must(t, os.Remove(path))
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
			_, err := s.CreatePet(t.Context(), rex)
			must(t, err)
			saved := path + ".saved"
			must(t, os.Link(path+tt.suffix, saved))
			tt.harm(t, path+tt.suffix)
			_, err = s.CreatePet(t.Context(), rex)
			for doing, err := range map[string]error{"CreatePet": err, "Ping": s.Ping(t.Context())} {
				if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "put the original file back, or restart") {
					t.Errorf("%s = %v, want ErrUnavailable, that the file %s, and what to do", doing, err, tt.want)
				}
			}
			must(t, os.Rename(saved, path+tt.suffix))
			if _, err := s.CreatePet(t.Context(), rex); err != nil {
				t.Errorf("with the original file back, CreatePet = %v", err)
			}
			if err := s.Ping(t.Context()); err != nil {
				t.Errorf("with the original file back, Ping = %v", err)
			}
		})
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
	s := open(t, link, sqlite.Options{})
	must(t, os.Rename(real+"-wal", real+"-wal.moved"))
	if _, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("CreatePet without the log = %v, want ErrUnavailable", err)
	}
	must(t, os.Rename(real+"-wal.moved", real+"-wal"))
}

// runTogether runs programs at once, each in its own process.
func runTogether(t *testing.T, path string, names ...string) {
	t.Helper()
	var wg sync.WaitGroup
	for _, name := range names {
		cmd := program(t, name, path)
		wg.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("process %q: %v: %s", name, err, out)
			}
		})
	}
	wg.Wait()
}

func TestProcessesStartTogetherOnANewFile(t *testing.T) {
	path := tempDatabase(t)
	runTogether(t, path, "create a first key", "create 25 pets", "create a first key", "create 25 pets",
		"open", "open", "open", "open")

	s := open(t, path, sqlite.Options{})
	pets, _, err := s.ListPets(t.Context(), store.ListQuery{Limit: 100})
	if err != nil || len(pets) != 50 {
		t.Errorf("ListPets = %d pets, %v, want the 50 of both processes", len(pets), err)
	}
	keys, err := s.ListKeys(t.Context())
	if err != nil || len(keys) != 1 {
		t.Errorf("ListKeys = %d keys, %v, want the one that was first", len(keys), err)
	}
}

func TestProcessesWriteWhileAnotherServes(t *testing.T) {
	path := tempDatabase(t)
	s := open(t, path, sqlite.Options{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 25 {
				if _, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"}); err != nil {
					t.Errorf("CreatePet beside other processes = %v", err)
				}
			}
		})
	}
	runTogether(t, path, "create 25 pets", "create a first key", "create 25 pets")
	wg.Wait()

	pets, _, err := s.ListPets(t.Context(), store.ListQuery{Limit: store.MaxList})
	if err != nil || len(pets) != 150 {
		t.Errorf("ListPets = %d pets, %v, want 150", len(pets), err)
	}
	// What another process has written is seen without a delay.
	keys, err := s.ListKeys(t.Context())
	if err != nil || len(keys) != 1 {
		t.Fatalf("ListKeys = %d keys, %v, want the other process's", len(keys), err)
	}
	if _, err := s.KeyByDigest(t.Context(), keys[0].Digest); err != nil {
		t.Errorf("KeyByDigest = %v", err)
	}
}

func TestBusyDatabase(t *testing.T) {
	path := tempDatabase(t)
	s := open(t, path, sqlite.Options{BusyTimeout: 20 * time.Millisecond})
	other := raw(t, path)
	execute(t, other, "BEGIN IMMEDIATE")

	_, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "unavailable: another process locks the file for too long") {
		t.Errorf("CreatePet while another process writes = %v, want an error that wraps ErrUnavailable and says why", err)
	}
	if pets, _, err := s.ListPets(t.Context(), store.ListQuery{Limit: 1}); err != nil || len(pets) > 0 {
		t.Errorf("ListPets while another process writes = %v, %v, want no pets", pets, err)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping while another process writes = %v", err)
	}

	execute(t, other, "COMMIT")
	if _, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"}); err != nil {
		t.Errorf("CreatePet after the other process has ended = %v", err)
	}
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Opener[store.Store] {
		path := filepath.Join(t.TempDir(), "pets.db")
		return func() (store.Store, error) { return sqlite.Open(t.Context(), path, sqlite.Options{}) }
	})
}

// A log that a long transaction or reader has made large does not stay so.
func TestTheLogShrinks(t *testing.T) {
	path := tempDatabase(t)
	s := open(t, path, sqlite.Options{})
	execute(t, raw(t, path), strings.Replace(manyPets, "LIMIT 2000", "LIMIT 100000", 1))
	size := func() int64 {
		info, err := os.Stat(path + "-wal")
		must(t, err)
		return info.Size()
	}
	before := size()
	for range 3 { // which move the log into the database, and begin a new one
		addPet(t, s, "Rex")
	}
	if after := size(); before <= 4<<20 || after > 4<<20 {
		t.Errorf("the log has %d bytes, and %d before, want more than 4 MiB before, and less after", after, before)
	}
}
