package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// restoreWithoutEnd restores two backups in turn. It prints a line for each restore.
func restoreWithoutEnd(ctx context.Context, path string) error {
	for n := 0; ; n++ {
		r, err := sqlite.Restore(ctx, fmt.Sprint(path, ".", n%2+1), path, operator, time.Now(), sqlite.Options{})
		if err != nil {
			return err
		}
		fmt.Println("restored")
		os.Remove(r.Replaced)
	}
}

// openWithoutEnd opens the database again and again, each time to add a pet. That may
// fail only if it has to wait for too long.
func openWithoutEnd(ctx context.Context, path string) error {
	for {
		err := withStore(ctx, path, func(s *sqlite.Store) error {
			_, err := s.CreatePet(ctx, store.NewPet{Name: "added"})
			return err
		})
		if err != nil && !errors.Is(err, store.ErrUnavailable) {
			fmt.Println(err)
		} else {
			fmt.Println("added or waited")
		}
	}
}

// twoBackups makes a database and two backups of it, with one pet and with two.
func twoBackups(t *testing.T) string {
	t.Helper()
	path := tempDatabase(t)
	for n := range 2 {
		do(t, path, func(s *sqlite.Store) { addPet(t, s, fmt.Sprint(n+1)) })
		if _, err := sqlite.Backup(t.Context(), path, fmt.Sprint(path, ".", n+1), sqlite.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// A restore that is killed has replaced everything or nothing.
func TestKilledRestore(t *testing.T) {
	path := twoBackups(t)
	for round := range 6 {
		killAfter(t, program(t, "restore without end", path), 3+round%2)
		do(t, path, func(s *sqlite.Store) {
			pets, _, err := s.ListPets(t.Context(), store.ListQuery{Limit: 10})
			if err != nil || len(pets) != 1 && len(pets) != 2 || pets[len(pets)-1].Name != fmt.Sprint(len(pets)) {
				t.Errorf("round %d: the pets are %v (%v), want those of one of the backups", round, pets, err)
			}
		})
		checkIntegrity(t, path)
	}
}

// Servers that start during restores find a whole database, before or after.
func TestRestoresWhileServersStart(t *testing.T) {
	path := twoBackups(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan []string)
	for range 2 {
		cmd := program(t, "open without end", path)
		go func() { ended <- killAfter(t, cmd, 100) }()
	}
	restored := 0
	go func() {
		defer close(ended)
		for n := 0; ctx.Err() == nil; n++ {
			at := later.Add(time.Duration(n) * time.Second)
			r, err := sqlite.Restore(t.Context(), fmt.Sprint(path, ".", n%2+1), path, operator, at, sqlite.Options{BusyTimeout: 20 * time.Millisecond})
			switch {
			case err == nil:
				restored++
				os.Remove(r.Replaced)
			case !errors.Is(err, sqlite.ErrInUse):
				t.Errorf("Restore = %v", err)
			}
		}
	}()
	for range 2 {
		for _, line := range <-ended {
			if line != "added or waited" {
				t.Errorf("a server that starts during restores says %q", line)
			}
		}
	}
	stop()
	for range ended {
	}
	t.Logf("%d restores", restored)
	do(t, path, func(*sqlite.Store) {})
	checkIntegrity(t, path)
}
