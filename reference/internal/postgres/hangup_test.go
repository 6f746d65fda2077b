//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// lock runs a statement in a transaction that ends with the function that it returns.
func lock(t *testing.T, url, text string) (unlock func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err == nil {
		_, err = conn.Exec(t.Context(), "BEGIN")
	}
	if err == nil {
		_, err = conn.Exec(t.Context(), text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if _, err := conn.Exec(context.Background(), "ROLLBACK"); err != nil {
			t.Error(err)
		}
		conn.Close(context.Background())
	}
}

// A call that has begun finishes though its client hangs up, and keeps its connection.
func TestAClientThatHangsUp(t *testing.T) {
	url := postgrestest.Database(t)
	s := open(t, url+"&pool_max_conns=1", postgres.Options{Timeout: time.Minute})
	pet := create(t, s)
	backend := func() (pid int) {
		eventually(t, "the connections of Open are closed", func() error {
			pids := query[[]int](t, url, "SELECT array_agg(pid) FROM pg_stat_activity WHERE application_name = 'petstore' AND datname = current_database()")
			if len(pids) != 1 {
				return fmt.Errorf("there are %d", len(pids))
			}
			pid = pids[0]
			return nil
		})
		return pid
	}
	before := backend()
	for name, call := range map[string]func(ctx context.Context) error{
		"CreatePet": func(ctx context.Context) error {
			_, err := s.CreatePet(ctx, store.NewPet{Name: "Rex"})
			return err
		},
		"CreatePetIf with a key": func(ctx context.Context) error {
			_, _, err := s.CreatePetIf(ctx, store.NewPet{Name: "Rex"}, new(store.IdempotencyKey{Owner: "ada", Key: "1", At: noon}), nil)
			return err
		},
		"CreatePetIf": func(ctx context.Context) error {
			_, _, err := s.CreatePetIf(ctx, store.NewPet{Name: "Rex"}, nil, always)
			return err
		},
		"Pet": func(ctx context.Context) error {
			_, err := s.Pet(ctx, pet.ID)
			return err
		},
		"ListKeys": func(ctx context.Context) error {
			_, err := s.ListKeys(ctx)
			return err
		},
	} {
		unlock := lock(t, url, "LOCK TABLE pets, keys IN ACCESS EXCLUSIVE MODE")
		ctx, hangUp := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- call(ctx) }()
		if err := waiting(t.Context(), url, 1); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		hangUp()
		time.Sleep(20 * time.Millisecond) // for a call that would notice
		unlock()
		if err := <-done; err != nil {
			t.Errorf("%s of a client that hangs up = %v", name, err)
		}
	}
	if after := backend(); after != before {
		t.Errorf("the connection is that of process %d, want %d as before", after, before)
	}
	if n := query[int](t, url, "SELECT count(*)::int FROM pets"); n != 4 {
		t.Errorf("%d pets are stored, want 4", n)
	}
}

// A read that has begun ends at the deadline of its context; a write finishes.
func TestADeadlineOfTheCaller(t *testing.T) {
	url := postgrestest.Database(t)
	s := open(t, url, postgres.Options{Timeout: time.Minute})
	pet := create(t, s)
	unlock := lock(t, url, "LOCK TABLE pets IN ACCESS EXCLUSIVE MODE")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // in which the calls begin
	defer cancel()
	done := make(chan error)
	go func() {
		_, err := s.CreatePet(ctx, store.NewPet{Name: "Rex"})
		done <- err
	}()
	if err := waiting(t.Context(), url, 1); err != nil {
		t.Error(err)
	}
	if _, err := s.Pet(ctx, pet.ID); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Pet = %v, want an error that wraps DeadlineExceeded", err)
	}
	<-ctx.Done()
	unlock()
	if err := <-done; err != nil {
		t.Errorf("CreatePet = %v, want nil after the deadline", err)
	}
}
