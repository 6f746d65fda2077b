package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

func openTest(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "pets.db"), Options{})
	must(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return s
}

// names returns the names of all pets, as readers see them.
func names(t *testing.T, s *Store) []string {
	t.Helper()
	pets, _, err := s.ListPets(t.Context(), store.ListQuery{Limit: store.MaxList})
	must(t, err)
	got := []string{}
	for _, p := range pets {
		got = append(got, p.Name)
	}
	return got
}

// insert is a job that stores a pet.
func (s *Store) insert(ctx context.Context, name string) error {
	_, err := s.writer.exec(ctx, insertPetText, name, 1, "available")
	return err
}

func TestWritesThatWaitShareATransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openTest(t)
		// The first write keeps the writer busy until the others are waiting.
		entered, proceed := make(chan struct{}), make(chan struct{})
		var wg sync.WaitGroup
		write := func(do func(context.Context) error) {
			wg.Go(func() {
				if err := s.write(t.Context(), "test", do); err != nil {
					t.Errorf("write = %v", err)
				}
			})
		}
		write(func(context.Context) error {
			close(entered)
			<-proceed
			return nil
		})
		<-entered
		const waiting = 10
		unseen := 0
		for i := range waiting {
			write(func(ctx context.Context) error {
				if err := s.insert(ctx, fmt.Sprint(i)); err != nil {
					return err
				}
				// Until the one transaction is committed, readers see none of it.
				if len(names(t, s)) == 0 {
					unseen++
				}
				return nil
			})
		}
		synctest.Wait()
		close(proceed)
		wg.Wait()
		if unseen != waiting {
			t.Errorf("%d of %d writes that were waiting shared the next transaction, want all", unseen, waiting)
		}
		if got := len(names(t, s)); got != waiting {
			t.Errorf("%d pets are stored, want %d", got, waiting)
		}
	})
}

func TestFailingWriteLeavesItsNeighboursAlone(t *testing.T) {
	broken := errors.New("broken")
	for name, fail := range map[string]func(ctx context.Context, s *Store) error{
		"its own error after it has written": func(ctx context.Context, s *Store) error {
			return errors.Join(s.insert(ctx, "bad"), broken)
		},
		"a constraint": func(ctx context.Context, s *Store) error {
			return errors.Join(s.insert(ctx, "bad"), s.insert(ctx, ""))
		},
		"an error that ends the transaction": func(ctx context.Context, s *Store) error {
			_, err := s.writer.exec(ctx, "ROLLBACK")
			return errors.Join(err, broken)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := openTest(t)
			var batch []*job
			for _, insert := range []string{"first", "", "second", "", "", "third"} {
				do := func(ctx context.Context) error { return s.insert(ctx, insert) }
				if insert == "" {
					do = func(ctx context.Context) error { return fail(ctx, s) }
				}
				batch = append(batch, &job{do: do})
			}
			tries := 0
			batch = append(batch, &job{do: func(ctx context.Context) error { // fails only beside others
				if tries++; tries == 1 {
					return broken
				}
				return s.insert(ctx, "alone")
			}})
			s.writer.run(batch)
			for i, j := range batch {
				if failing := i == 1 || i == 3 || i == 4; failing != (j.err != nil) {
					t.Errorf("write %d = %v, want an error: %v", i, j.err, failing)
				}
			}
			// The writer is as good as new.
			_, err := s.CreatePet(t.Context(), store.NewPet{Name: "next"})
			must(t, err)
			if diff := cmp.Diff([]string{"first", "second", "third", "alone", "next"}, names(t, s)); diff != "" {
				t.Errorf("what is stored (-want +got):\n%s", diff)
			}
		})
	}
}

// A caller that gives up while it waits stores nothing. A write that is under way tells its
// outcome, although its caller has given up, and Close waits for it.
func TestCallersThatGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openTest(t)
		underWay, giveUp := context.WithCancel(t.Context())
		proceed, ended, waiting, closed := make(chan struct{}), make(chan error), make(chan error), make(chan error)
		go func() {
			ended <- s.write(underWay, "test", func(ctx context.Context) error {
				<-proceed
				return s.insert(ctx, "under way")
			})
		}()
		synctest.Wait()
		waits, stop := context.WithCancel(t.Context())
		go func() {
			_, err := s.CreatePet(waits, store.NewPet{Name: "waiting"})
			waiting <- err
		}()
		synctest.Wait()
		stop()
		if err := <-waiting; !errors.Is(err, context.Canceled) {
			t.Errorf("CreatePet = %v, want an error that wraps context.Canceled", err)
		}
		giveUp()
		go func() { closed <- s.Close() }()
		synctest.Wait()
		close(proceed)
		if err := errors.Join(<-ended, <-closed); err != nil {
			t.Errorf("the write under way and Close = %v, want nil, for it took place", err)
		}
		again, err := Open(t.Context(), s.path, Options{})
		must(t, err)
		defer again.Close()
		if diff := cmp.Diff([]string{"under way"}, names(t, again)); diff != "" {
			t.Errorf("what is stored (-want +got):\n%s", diff)
		}
	})
}

// When the database is full, callers get an error that says so, exactly what was acknowledged is
// stored, and writes go on when there is room again.
func TestFullDatabase(t *testing.T) {
	s := openTest(t)
	limit := func(pages int) {
		must(t, s.write(t.Context(), "test", func(ctx context.Context) error {
			_, err := s.writer.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA max_page_count = %d", pages))
			return err
		}))
	}
	limit(30)
	// Callers at once, so that transactions are shared when it happens.
	var mu sync.Mutex
	acknowledged := map[int64]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				pet, err := s.CreatePet(t.Context(), store.NewPet{Name: fmt.Sprintf("%0255d", 0)})
				if err != nil {
					if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "the disk is full") {
						t.Errorf("CreatePet in a full database = %v, want an error that wraps ErrUnavailable and says so", err)
					}
					return
				}
				mu.Lock()
				acknowledged[pet.ID] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	stored := map[int64]bool{}
	pets, _, err := s.ListPets(t.Context(), store.ListQuery{Limit: store.MaxList})
	must(t, err)
	for _, p := range pets {
		stored[p.ID] = true
	}
	if diff := cmp.Diff(acknowledged, stored); diff != "" || len(stored) == 0 {
		t.Errorf("what is stored is not what was acknowledged (-acknowledged +stored):\n%s", diff)
	}
	limit(1000)
	_, err = s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
	if err := errors.Join(err, s.Ping(t.Context())); err != nil {
		t.Errorf("CreatePet when there is room again, and Ping = %v", err)
	}
}

// What is written to a file that is deleted meanwhile is lost, and must not be acknowledged.
func TestAFileThatIsDeletedDuringAWrite(t *testing.T) {
	s := openTest(t)
	err := s.write(t.Context(), "test", func(context.Context) error { return os.Remove(s.path) })
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("write = %v, want ErrUnavailable", err)
	}
}
