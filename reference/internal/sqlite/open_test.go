package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
	"github.com/animalstore/gatehouse/reference/internal/store/storetest"
)

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

// A database is private. While it is open, it has companions, and afterwards it is one file, fit to
// be copied.
func TestFilesOfADatabase(t *testing.T) {
	path := tempDatabase(t)
	s := open(t, path, sqlite.Options{})
	for _, file := range []string{path, path + "-wal", path + "-shm"} {
		checkMode(t, file)
	}
	addPet(t, s, "Rex")
	must(t, s.Close())
	checkLeft(t, path, "pets.db")
}

// A file that is gone swallows every write without an error. The server must not
// acknowledge one. SQLite follows a symbolic link to find the log, and so must the watch on it.
func TestDeletedAndReplacedFilesAreNoticed(t *testing.T) {
	replace := func(t *testing.T, path string) {
		writeFile(t, path+".new", readFile(t, path))
		must(t, os.Rename(path+".new", path))
	}
	remove := func(t *testing.T, path string) { must(t, os.Remove(path)) }
	for _, tt := range []struct {
		name, suffix string
		link         bool
		harm         func(*testing.T, string)
		want         string
	}{
		{"deleted", "", false, remove, "deleted"},
		{"replaced", "", false, replace, "replaced"},
		{"log deleted", "-wal", false, remove, "deleted"},
		{"log replaced", "-wal", false, replace, "replaced"},
		{"index of the log deleted", "-shm", false, remove, "deleted"},
		{"log behind a symbolic link deleted", "-wal", true, remove, "deleted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := tempDatabase(t)
			name := path
			if tt.link {
				open(t, path, sqlite.Options{}).Close()
				name = path + ".link"
				if err := os.Symlink(path, name); err != nil {
					t.Skipf("skipped: symbolic links cannot be made here: %v", err)
				}
			}
			s := open(t, name, sqlite.Options{})
			addPet(t, s, "Rex")
			saved := path + ".saved"
			must(t, os.Link(path+tt.suffix, saved))
			tt.harm(t, path+tt.suffix)
			_, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
			want := "was " + tt.want + " while this process has it open; put the original file back, or restart"
			for doing, err := range map[string]error{"CreatePet": err, "Ping": s.Ping(t.Context())} {
				if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), want) {
					t.Errorf("%s = %v, want ErrUnavailable and %q", doing, err, want)
				}
			}
			must(t, os.Rename(saved, path+tt.suffix))
			addPet(t, s, "Rex")
			if err := s.Ping(t.Context()); err != nil {
				t.Errorf("with the original file back, Ping = %v", err)
			}
		})
	}
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

// Processes can start together on a new file, and write while another serves, which sees immediately
// what they have written.
func TestProcessesShareADatabase(t *testing.T) {
	path := tempDatabase(t)
	runTogether(t, path, "create a first key", "create 25 pets", "create a first key", "create 25 pets", "open", "open", "open", "open")
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
	if err != nil || len(pets) != 200 {
		t.Errorf("ListPets = %d pets, %v, want the 200 of all", len(pets), err)
	}
	keys, err := s.ListKeys(t.Context())
	if err != nil || len(keys) != 1 {
		t.Errorf("ListKeys = %d keys, %v, want the one that was first", len(keys), err)
	}
}

func TestBusyDatabase(t *testing.T) {
	path := tempDatabase(t)
	sqlite.ShortenBusyTimeout(t)
	s := open(t, path, sqlite.Options{})
	other := raw(t, path)
	execute(t, other, "BEGIN IMMEDIATE")

	_, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "unavailable: another process locks the file for too long") {
		t.Errorf("CreatePet while another process writes = %v, want an error that wraps ErrUnavailable and says why", err)
	}
	if pets, _, err := s.ListPets(t.Context(), store.ListQuery{Limit: 1}); err != nil || len(pets) > 0 {
		t.Errorf("ListPets while another process writes = %v, %v, want no pets", pets, err)
	}
	execute(t, other, "COMMIT")
	addPet(t, s, "Rex")
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Opener {
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
