//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

func TestKilledUnderWrites(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
	testenv.Long(t, "promotes a standby")
	t.Parallel()
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
	t.Parallel()
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
	// A session that has not noticed yet would still answer.
	end := "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity WHERE application_name = 'petstore' AND datname = current_database()"
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
	t.Parallel()
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
					checkUnavailable(t, err) // too many connections, or one took too long on a busy machine
				}
			}
		})
	}
	wg.Wait()
	createSoon(t, a)

	// A server that gets none says so. Connections that were closed before may take a
	// moment to end, and one that ends after the others were opened is left for the last
	// server, which would then keep it.
	a.Close()
	b.Close()
	var last *postgres.Store
	var idle []*postgres.Store
	eventually(t, "a server gets no connection", func() (err error) {
		if last, err = postgres.Open(t.Context(), url, postgres.Options{}); err != nil {
			return err
		}
		for err == nil {
			var s *postgres.Store
			if s, err = postgres.Open(t.Context(), url+"&pool_max_conns=1", postgres.Options{}); err == nil {
				idle = append(idle, s)
				err = s.Ping(t.Context())
			}
		}
		checkUnavailable(t, err, "too many connections", "pool_max_conns", "max_connections")
		if _, err = last.CreatePet(t.Context(), store.NewPet{Name: "Rex"}); err == nil {
			for _, s := range append(idle, last) {
				s.Close()
			}
			idle = nil
			return errors.New("a pet was created")
		}
		checkUnavailable(t, err, "too many connections", "pool_max_conns", "max_connections")
		return nil
	})
	defer last.Close()
	for _, s := range idle {
		s.Close()
	}
	createSoon(t, last)
	createSoon(t, open(t, url, postgres.Options{}))
}

// createSoon is create where connections of others may still have to end.
func createSoon(t *testing.T, s *postgres.Store) {
	t.Helper()
	eventually(t, "a pet is created", func() error {
		_, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
		return err
	})
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
