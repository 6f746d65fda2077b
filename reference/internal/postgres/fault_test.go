//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// writers create pets until they are stopped. Each pet has its number as category.
type writers struct {
	t    *testing.T
	s    *postgres.Store
	stop chan struct{}
	wg   sync.WaitGroup

	acknowledged atomic.Int64 // pets

	mu      sync.Mutex
	made    map[int64]int64 // number by ID
	refused map[int64]error // by number: stored nothing
	unknown map[int64]bool  // by number
}

func startWriters(t *testing.T, s *postgres.Store, n int) *writers {
	w := &writers{
		t: t, s: s, stop: make(chan struct{}),
		made: map[int64]int64{}, refused: map[int64]error{}, unknown: map[int64]bool{},
	}
	var next atomic.Int64
	for range n {
		w.wg.Go(func() {
			for {
				select {
				case <-w.stop:
					return
				default:
					w.write(next.Add(1))
				}
			}
		})
	}
	return w
}

// write creates a pet in one of the three ways.
func (w *writers) write(n int64) {
	p := store.NewPet{Name: fmt.Sprint(n), CategoryID: n}
	k := store.IdempotencyKey{Owner: "ada", Key: fmt.Sprint(n), At: noon}
	var pet store.Pet
	var err error
	switch n % 8 {
	case 0:
		pet, _, err = w.s.CreatePetIf(context.Background(), p, &k, always)
	case 1, 2, 3:
		pet, _, err = w.s.CreatePetOnce(context.Background(), p, k)
	default:
		pet, err = w.s.CreatePet(context.Background(), p)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		w.made[pet.ID] = n
		w.acknowledged.Add(1)
	case strings.Contains(err.Error(), "the outcome is unknown"):
		w.unknown[n] = true
	default:
		w.refused[n] = err
	}
	if err != nil {
		checkUnavailable(w.t, err)
	}
}

// more waits until n more pets are acknowledged.
func (w *writers) more(n int64) {
	w.t.Helper()
	want := w.acknowledged.Load() + n
	eventually(w.t, "writing goes on", func() error {
		if got := w.acknowledged.Load(); got < want {
			return fmt.Errorf("%d pets are acknowledged, want %d", got, want)
		}
		return nil
	})
}

// check stops the writers and compares what is stored with what was acknowledged.
func (w *writers) check() {
	w.t.Helper()
	close(w.stop)
	w.wg.Wait()
	stored := map[int64]int64{} // ID by number
	q := store.ListQuery{Limit: store.MaxList}
	for more := true; more; {
		var pets []store.Pet
		var err error
		if pets, more, err = w.s.ListPets(context.Background(), q); err != nil {
			w.t.Fatalf("ListPets = %v", err)
		}
		for _, p := range pets {
			if stored[p.CategoryID] != 0 {
				w.t.Errorf("pet %d is stored twice", p.CategoryID)
			}
			stored[p.CategoryID] = p.ID
			q.After = p.ID
			if err, ok := w.refused[p.CategoryID]; ok {
				w.t.Errorf("pet %d is stored, though its write failed with %v", p.CategoryID, err)
			}
			if _, ok := w.made[p.ID]; !ok && !w.unknown[p.CategoryID] {
				w.t.Errorf("pet %d is stored and nobody was told so", p.CategoryID)
			}
		}
	}
	for id, n := range w.made {
		if stored[n] != id {
			w.t.Errorf("pet %d was acknowledged with ID %d and is stored with ID %d", n, id, stored[n])
		}
	}
	w.t.Logf("%d pets acknowledged, %d refused, %d with an unknown outcome", len(w.made), len(w.refused), len(w.unknown))
}

func TestKilledUnderWrites(t *testing.T) {
	server := postgrestest.Start(t)
	w := startWriters(t, open(t, server.URL("postgres"), postgres.Options{}), 24)
	for range 3 {
		w.more(200)
		server.Kill()
		server.Restart()
	}
	w.more(200)
	w.check()
}

func TestStoppedUnderWrites(t *testing.T) {
	server := postgrestest.Start(t)
	w := startWriters(t, open(t, server.URL("postgres"), postgres.Options{}), 24)
	for range 2 {
		w.more(200)
		server.Stop()
		server.Restart()
	}
	// A single connection that is ended costs nothing but itself.
	for range 3 {
		w.more(50)
		server.Exec("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'petstore'")
	}
	w.more(200)
	w.check()
}

// With a synchronous standby, no acknowledged pet is lost when the primary is.
func TestFailoverUnderWrites(t *testing.T) {
	primary := postgrestest.Start(t)
	primary.Exec("postgres", "CREATE DATABASE pets")
	standby := primary.StartStandby()
	primary.Synchronous()
	url := strings.Replace(primary.URL("pets"), primary.Addr, primary.Addr+","+standby.Addr, 1)
	s := open(t, url, postgres.Options{})
	w := startWriters(t, s, 24)
	w.more(200)
	primary.Kill()
	checkUnavailable(t, s.Ping(t.Context()), standby.Addr)
	standby.Promote()
	w.more(200)
	w.check()
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping after the failover = %v", err)
	}
}

// A standby can be read, but a server on it is not ready.
func TestStandby(t *testing.T) {
	primary := postgrestest.Start(t)
	url := primary.URL("postgres")
	pet := create(t, open(t, url, postgres.Options{}))
	standby := primary.StartStandby()
	s := open(t, standby.URL("postgres"), postgres.Options{})
	if got, err := s.Pet(t.Context(), pet.ID); err != nil || got != pet {
		t.Errorf("Pet on a standby = %v, %v, want %v", got, err, pet)
	}
	checkUnavailable(t, s.Ping(t.Context()), "read-only")
	_, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
	checkUnavailable(t, err, "read-only")
	if strings.Contains(err.Error(), "unknown") {
		t.Errorf("the outcome of a write on a standby is %v", err)
	}
	standby.Promote()
	eventually(t, "the promoted standby can be written", func() error {
		_, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
		return err
	})
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping after the promotion = %v", err)
	}
}

// A primary that becomes read-only under the connections, as some services do when a disk
// is full, is read further and written again when it can be.
func TestReadOnlyForAWhile(t *testing.T) {
	url := postgrestest.Database(t)
	s := open(t, url, postgres.Options{})
	pet := create(t, s)
	database := query[string](t, url, "SELECT current_database()")
	end := "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'petstore' AND datname = current_database()"
	postgrestest.Exec(t, url, "ALTER DATABASE "+database+" SET default_transaction_read_only = on", end)
	checkUnavailable(t, s.Ping(t.Context()), "read-only")
	_, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
	checkUnavailable(t, err, "read-only")
	if got, err := s.Pet(t.Context(), pet.ID); err != nil || got != pet {
		t.Errorf("Pet = %v, %v, want %v", got, err, pet)
	}
	// The connections that found it so are replaced, without a restart.
	postgrestest.Exec(t, strings.Replace(url, "?", "?default_transaction_read_only=off&", 1), "ALTER DATABASE "+database+" RESET default_transaction_read_only")
	eventually(t, "the database can be written", func() error {
		_, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
		return err
	})
}

func TestTooManyConnections(t *testing.T) {
	server := postgrestest.Start(t, "max_connections=8", "superuser_reserved_connections=1", "max_wal_senders=0")
	server.Exec("postgres", "CREATE ROLE petstore LOGIN PASSWORD '"+postgrestest.Password+"'", "CREATE DATABASE pets OWNER petstore")
	url := server.UserURL("petstore", postgrestest.Password, "pets")

	// Two servers want 16 each. What the server has is enough for both to go on.
	a, b := open(t, url, postgres.Options{}), open(t, url, postgres.Options{})
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for range 5 {
				if _, err := []*postgres.Store{a, b}[i%2].CreatePet(t.Context(), store.NewPet{Name: "Rex"}); err != nil {
					checkUnavailable(t, err, "too many connections")
				}
			}
		})
	}
	wg.Wait()
	create(t, a)

	// A server that gets none says so.
	a.Close()
	b.Close()
	last := open(t, url, postgres.Options{})
	var idle []*postgres.Store
	var err error
	for err == nil {
		var s *postgres.Store
		if s, err = postgres.Open(t.Context(), url+"&pool_max_conns=1", postgres.Options{}); err == nil {
			idle = append(idle, s)
			err = s.Ping(t.Context())
		}
	}
	checkUnavailable(t, err, "too many connections", "pool_max_conns", "max_connections")
	_, err = last.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
	checkUnavailable(t, err, "too many connections", "pool_max_conns", "max_connections")
	for _, s := range idle {
		s.Close()
	}
	create(t, last)
	create(t, open(t, url, postgres.Options{}))
}

func TestAllConnectionsInUse(t *testing.T) {
	url := postgrestest.Database(t)
	s := open(t, url+"&pool_max_conns=1", postgres.Options{})
	hold, held := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _, err := s.CreatePetIf(t.Context(), store.NewPet{Name: "Rex"}, nil, func(func(store.ListQuery) ([]store.Pet, bool, error)) (bool, error) {
			once.Do(func() { close(held) })
			<-hold
			return true, nil
		})
		if err != nil {
			t.Errorf("CreatePetIf = %v", err)
		}
	})
	<-held
	ctx, cancel := context.WithTimeout(t.Context(), 1) // ends while it waits, or before
	defer cancel()
	_, err := s.Pet(ctx, 1)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Pet = %v, want an error that wraps DeadlineExceeded", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	go cancel()
	if _, err := s.Pet(canceled, 1); !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Pet = %v, want an error that wraps Canceled alone", err)
	}
	close(hold)
	wg.Wait()
}
