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

// While a pet is created on a condition, others read pets and write keys.
func TestReadsGoOnDuringACondition(t *testing.T) {
	url := postgrestest.Database(t)
	s := open(t, url, postgres.Options{})
	pet := create(t, s)
	_, _, err := s.CreatePetIf(t.Context(), store.NewPet{Name: "Rex"}, nil, func(list func(store.ListQuery) ([]store.Pet, bool, error)) (bool, error) {
		if got, err := s.Pet(t.Context(), pet.ID); got != pet || err != nil {
			t.Errorf("Pet = %v, %v, want %v", got, err, pet)
		}
		if pets, _, err := s.ListPets(t.Context(), store.ListQuery{Limit: 2}); len(pets) != 1 || err != nil {
			t.Errorf("ListPets = %v, %v, want one pet", pets, err)
		}
		k := store.NewKey{Digest: store.Digest{1}, LastFour: "abcd", Name: "n", Owner: "o", Plan: "p", Created: noon}
		if _, err := s.CreateFirstKey(t.Context(), k, store.Actor{Name: "admin"}); err != nil {
			t.Errorf("CreateFirstKey = %v", err)
		}
		return true, nil
	})
	if err != nil {
		t.Errorf("CreatePetIf = %v", err)
	}
}

// Each new idempotency key removes expired ones, and only those. It does not wait for a
// transaction that has locked one.
func TestExpiredIdempotencyKeysAreRemoved(t *testing.T) {
	url := postgrestest.Database(t)
	s := open(t, url, postgres.Options{})
	n := 0
	once := func(times int, at time.Time) {
		t.Helper()
		for range times {
			n++
			if _, _, err := s.CreatePetIf(t.Context(), store.NewPet{Name: "Rex"}, new(store.IdempotencyKey{Owner: "ada", Key: fmt.Sprint(n), At: at}), nil); err != nil {
				t.Fatalf("CreatePetIf = %v", err)
			}
		}
	}
	count := func(want int) {
		t.Helper()
		if got := query[int](t, url, "SELECT count(*)::int FROM idempotency_keys"); got != want {
			t.Errorf("%d idempotency keys are stored, want %d", got, want)
		}
	}
	const moment = time.Microsecond
	once(6, noon)
	once(3, noon.Add(moment))
	count(9)
	unlock := lock(t, url, "SELECT FROM idempotency_keys WHERE key = '1' FOR UPDATE")
	once(3, noon.Add(store.IdempotencyLifetime))
	count(1 + 3 + 3)
	unlock()
	once(1, noon.Add(store.IdempotencyLifetime))
	count(3 + 4)
}

// More days are removed than one statement does, and those that another server is removing
// are left to it.
func TestManyOldDaysAreRemoved(t *testing.T) {
	url := postgrestest.Database(t)
	s := open(t, url, postgres.Options{})
	const old = 25_000
	postgrestest.Exec(t, url,
		fmt.Sprintf("INSERT INTO daily_use SELECT 'o' || n, '2026-01-01', 1, 1 FROM generate_series(1, %d) AS n", old),
		fmt.Sprintf("INSERT INTO deprecated_use_by_day SELECT '2026-01-01', 'getPet', 'o' || n, 1 FROM generate_series(1, %d) AS n", old),
		"INSERT INTO daily_use VALUES ('new', '2026-05-04', 1, 1)", "INSERT INTO deprecated_use_by_day VALUES ('2026-05-04', 'getPet', 'new', 1)")
	const count = "SELECT array[(SELECT count(*) FROM daily_use), (SELECT count(*) FROM deprecated_use_by_day)]::int[]"
	unlock := lock(t, url, "WITH d AS (SELECT FROM daily_use WHERE owner = 'o7' FOR UPDATE) SELECT FROM d, deprecated_use_by_day WHERE owner = 'o7' FOR UPDATE")
	for _, want := range []int{2, 1} {
		if err := s.PruneDailyUse(t.Context(), noon); err != nil {
			t.Errorf("PruneDailyUse = %v", err)
		}
		if got := query[[]int](t, url, count); got[0] != want || got[1] != want {
			t.Errorf("%v days are left, want %d of each kind", got, want)
		}
		if want == 2 {
			unlock()
		}
	}
}

// The first key waits for another one that is being created, and then is not the first.
func TestTheFirstKeyWaitsForOthers(t *testing.T) {
	url := postgrestest.Database(t)
	s := open(t, url, postgres.Options{Timeout: time.Minute})
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), `BEGIN; INSERT INTO keys VALUES
		('key_1', decode(repeat('01', 32), 'hex'), 'abcd', 'n', 'o', 'p', '{}', '{}', now())`); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		k := store.NewKey{Digest: store.Digest{2}, LastFour: "abcd", Name: "n", Owner: "o", Plan: "p", Created: noon}
		_, err := s.CreateFirstKey(t.Context(), k, store.Actor{Name: "admin"})
		done <- err
	}()
	if err := waiting(t.Context(), url, 1); err != nil {
		t.Error(err)
	}
	if _, err := conn.Exec(t.Context(), "COMMIT"); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, store.ErrExists) {
		t.Errorf("CreateFirstKey = %v, want an error that wraps ErrExists", err)
	}
}
