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

func newJob(do func(context.Context) error) *job {
	return &job{do: do, done: make(chan struct{})}
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
	rollBack := func(ctx context.Context, s *Store) error {
		err := s.insert(ctx, "bad")
		_, rollbackErr := s.writer.exec(ctx, "ROLLBACK")
		return errors.Join(err, rollbackErr, broken)
	}
	for _, tt := range []struct {
		name   string
		job    func(ctx context.Context, s *Store) error
		single bool  // all jobs are single statements
		want   error // wrapped; nil: any
	}{
		{"a constraint of a single statement", func(ctx context.Context, s *Store) error { return s.insert(ctx, "") }, true, nil},
		{"its own error after it has written", func(ctx context.Context, s *Store) error {
			return errors.Join(s.insert(ctx, "bad"), broken)
		}, false, broken},
		{"a constraint", func(ctx context.Context, s *Store) error {
			return errors.Join(s.insert(ctx, "bad"), s.insert(ctx, ""))
		}, false, nil},
		{"an error that ends the transaction", rollBack, false, broken},
		{"a single statement that ends the transaction", rollBack, true, broken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := openTest(t)
			good := func(name string) func(context.Context) error {
				return func(ctx context.Context) error { return s.insert(ctx, name) }
			}
			bad := func(ctx context.Context) error { return tt.job(ctx, s) }
			batch := []*job{newJob(good("first")), newJob(bad), newJob(good("last"))}
			for _, j := range batch {
				j.single = tt.single
			}
			s.writer.run(batch)

			if batch[0].err != nil || batch[2].err != nil {
				t.Errorf("the neighbours of a failing write got %v and %v, want nil", batch[0].err, batch[2].err)
			}
			if err := batch[1].err; err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("the failing write got %v, want its error", err)
			}
			if diff := cmp.Diff([]string{"first", "last"}, names(t, s)); diff != "" {
				t.Errorf("what is stored (-want +got):\n%s", diff)
			}
			// The writer is as good as new.
			if _, err := s.CreatePet(t.Context(), store.NewPet{Name: "next"}); err != nil {
				t.Errorf("CreatePet afterwards = %v", err)
			}
		})
	}
}

func TestCallerThatGivesUpWaitingStoresNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openTest(t)
		proceed, ended := make(chan struct{}), make(chan error)
		go func() {
			ended <- s.write(t.Context(), "test", func(context.Context) error {
				<-proceed
				return nil
			})
		}()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		waiting := make(chan error)
		go func() {
			_, err := s.CreatePet(ctx, store.NewPet{Name: "Rex"})
			waiting <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-waiting; !errors.Is(err, context.Canceled) {
			t.Errorf("CreatePet = %v, want an error that wraps context.Canceled", err)
		}
		close(proceed)
		if err := <-ended; err != nil {
			t.Errorf("the write under way got %v, want nil", err)
		}
		if got := names(t, s); len(got) > 0 {
			t.Errorf("%v is stored", got)
		}
	})
}

func TestWriteUnderWayTellsItsOutcome(t *testing.T) {
	s := openTest(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := s.write(ctx, "test", func(ctx context.Context) error {
		cancel()
		return s.insert(ctx, "Rex")
	})
	if err != nil {
		t.Errorf("a write whose caller's context ends during it got %v, want nil, for it took place", err)
	}
	if diff := cmp.Diff([]string{"Rex"}, names(t, s)); diff != "" {
		t.Errorf("what is stored (-want +got):\n%s", diff)
	}
}

func TestCloseWaitsForTheWriteUnderWay(t *testing.T) {
	s := openTest(t)
	entered, proceed, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		ended <- s.write(t.Context(), "test", func(ctx context.Context) error {
			close(entered)
			<-proceed
			return s.insert(ctx, "Rex")
		})
	}()
	<-entered
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	<-s.writer.quit
	close(proceed)
	if err := <-ended; err != nil {
		t.Errorf("the write under way got %v, want nil", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("Close = %v", err)
	}

	again, err := Open(t.Context(), s.path, Options{})
	must(t, err)
	defer again.Close()
	if diff := cmp.Diff([]string{"Rex"}, names(t, again)); diff != "" {
		t.Errorf("what is stored (-want +got):\n%s", diff)
	}
}

func TestFullDatabase(t *testing.T) {
	s := openTest(t)
	limit := func(pages int) {
		t.Helper()
		if err := s.write(t.Context(), "test", func(ctx context.Context) error {
			_, err := s.writer.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA max_page_count = %d", pages))
			return err
		}); err != nil {
			t.Fatal(err)
		}
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

	checkAcknowledged(t, s, acknowledged)
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping of a full database = %v", err)
	}
	limit(1000)
	if _, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"}); err != nil {
		t.Errorf("CreatePet when there is room again = %v", err)
	}
}

// checkAcknowledged checks that exactly these pets are stored.
func checkAcknowledged(t *testing.T, s *Store, acknowledged map[int64]bool) {
	t.Helper()
	if len(acknowledged) == 0 {
		t.Fatal("nothing was acknowledged before the database was full")
	}
	stored := map[int64]bool{}
	q := store.ListQuery{Limit: store.MaxList}
	for more := true; more; {
		var pets []store.Pet
		var err error
		if pets, more, err = s.ListPets(t.Context(), q); err != nil {
			t.Fatalf("ListPets of a full database = %v", err)
		}
		for _, p := range pets {
			stored[p.ID], q.After = true, p.ID
		}
	}
	if diff := cmp.Diff(acknowledged, stored); diff != "" {
		t.Errorf("what is stored is not what was acknowledged (-acknowledged +stored):\n%s", diff)
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
