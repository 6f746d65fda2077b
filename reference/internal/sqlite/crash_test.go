package sqlite_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// now is the time of all changes.
var now = time.Unix(1_700_000_000, 0).UTC()

func once(key string) store.IdempotencyKey {
	return store.IdempotencyKey{Owner: "ada", Key: key, At: now}
}

// changeWithoutEnd makes changes that consist of several rows, and prints each once it
// is acknowledged.
func changeWithoutEnd(ctx context.Context, path string) error {
	return withStore(ctx, path, func(s *sqlite.Store) error {
		by := store.Actor{Name: "test"}
		createPet := func(int) (string, error) {
			pet, err := s.CreatePet(ctx, store.NewPet{Name: "plain " + rand.Text()})
			return fmt.Sprint("pet ", pet.ID, " ", pet.Name), err
		}
		var wg sync.WaitGroup
		for _, change := range []func(n int) (string, error){
			func(n int) (string, error) {
				k := store.NewKey{LastFour: "abcd", Name: "n", Owner: "ada", Plan: "free", Created: now}
				rand.Read(k.Digest[:])
				key, err := s.CreateKey(ctx, k, by)
				if err != nil || n%3 == 0 {
					return "create " + key.ID, err
				}
				if n%3 == 1 {
					_, err = s.RevokeKey(ctx, key.ID, now, by)
					return "revoke " + key.ID, err
				}
				r := store.Rotation{LastFour: "abcd", At: now}
				rand.Read(r.Digest[:])
				_, err = s.RotateKey(ctx, key.ID, r, by)
				return "rotate " + key.ID, err
			},
			createPet, createPet, createPet, createPet, // in one transaction, if they wait for each other
			func(n int) (string, error) {
				name := rand.Text()
				pet, _, err := s.CreatePetOnce(ctx, store.NewPet{Name: name}, once(name))
				return fmt.Sprint("once ", name, " ", pet.ID), err
			},
			func(n int) (string, error) {
				return "day", s.AddDailyUse(ctx, store.DailyUse{Owner: "ada", Day: store.Day(now), Allowed: 1})
			},
			func(n int) (string, error) {
				return "use", s.AddDeprecatedUse(ctx, store.DeprecatedUse{Operation: "getPet", Owner: "ada", Count: 1, Last: now})
			},
		} {
			wg.Go(func() {
				for n := 0; ; n++ {
					line, err := change(n)
					if err != nil {
						fmt.Fprintln(os.Stderr, err)
						return
					}
					fmt.Fprintln(os.Stdout, line) // one system call, so that lines stay whole
				}
			})
		}
		wg.Wait()
		return nil
	})
}

// What was acknowledged survives a kill, and no ID is given twice. What belongs together survives
// together: a change of a key and its audit entry, a pet and its idempotency key, the use of
// what is deprecated and its days.
func TestKilledProcess(t *testing.T) {
	path := tempDatabase(t)
	var acknowledged []string
	for round := range 3 {
		acknowledged = append(acknowledged, killAfter(t, program(t, "change without end", path), 300)...)
		s := open(t, path, sqlite.Options{})
		checkAcknowledgedChanges(t, s, acknowledged)
		must(t, s.Close())
		db := raw(t, path)
		for what, query := range map[string]string{
			"keys without the audit entry of their creation": `SELECT count(*) FROM keys WHERE id NOT IN (SELECT target FROM audit WHERE action = 'key.create')
				AND NOT EXISTS (SELECT 1 FROM audit WHERE action = 'key.rotate' AND detail LIKE '%new="' || keys.id || '"%')`,
			"revoked keys without an audit entry": `SELECT count(*) FROM keys WHERE revoked IS NOT NULL
				AND id NOT IN (SELECT target FROM audit WHERE action = 'key.revoke')`,
			"rotated keys without an audit entry": `SELECT count(*) FROM keys WHERE expires IS NOT NULL
				AND id NOT IN (SELECT target FROM audit WHERE action = 'key.rotate')`,
			"audit entries without their key": `SELECT count(*) FROM audit WHERE NOT EXISTS
				(SELECT 1 FROM keys WHERE id = target AND CASE action
					WHEN 'key.create' THEN true WHEN 'key.revoke' THEN revoked IS NOT NULL ELSE expires IS NOT NULL END)`,
			"pets without an idempotency key":       `SELECT count(*) FROM pets WHERE name NOT LIKE 'plain %' AND name NOT IN (SELECT key FROM idempotency_keys WHERE pet = pets.id)`,
			"idempotency keys without a pet":        `SELECT count(*) FROM idempotency_keys WHERE key NOT IN (SELECT name FROM pets WHERE id = pet)`,
			"deprecated uses that are not in a day": `SELECT (SELECT sum(count) FROM deprecated_use) - (SELECT sum(count) FROM deprecated_use_by_day)`,
		} {
			var n int
			if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil || n != 0 {
				t.Errorf("round %d: there are %d %s (%v), want none", round, n, what, err)
			}
		}
		db.Close()
		checkIntegrity(t, path)
	}
}

func checkAcknowledgedChanges(t *testing.T, s *sqlite.Store, lines []string) {
	t.Helper()
	kinds, pets := map[string]int64{}, map[string]bool{}
	for _, line := range lines {
		words := strings.Fields(line)
		kinds[words[0]]++
		switch words[0] {
		case "create", "revoke", "rotate":
			key, err := s.Key(t.Context(), words[1])
			if err != nil || key.Active(now) != (words[0] == "create") {
				t.Errorf("after %q was acknowledged, the key is %+v (%v)", line, key, err)
			}
		case "pet":
			var id int64
			_, _ = fmt.Sscan(words[1], &id)
			pet, err := s.Pet(t.Context(), id)
			if err != nil || pet.Name != words[2]+" "+words[3] || pets[words[1]] {
				t.Errorf("after %q was acknowledged, the pet is %+v (%v), and its ID was given twice: %v", line, pet, err, pets[words[1]])
			}
			pets[words[1]] = true
		case "once":
			pet, replayed, err := s.CreatePetOnce(t.Context(), store.NewPet{Name: "another"}, once(words[1]))
			if err != nil || !replayed || fmt.Sprint(pet.ID) != words[2] || pet.Name != words[1] {
				t.Errorf("after %q was acknowledged, the request again gives %+v, replayed %v (%v)", line, pet, replayed, err)
			}
		}
	}
	days, err := s.ListDailyUse(t.Context(), "ada", now)
	if err != nil || len(days) != 1 || days[0].Allowed < kinds["day"] {
		t.Errorf("the daily use is %+v (%v), want at least the %d that were acknowledged", days, err, kinds["day"])
	}
	uses, err := s.ListDeprecatedUse(t.Context(), now)
	if err != nil || len(uses) != 1 || uses[0].Count < kinds["use"] {
		t.Errorf("the deprecated use is %+v (%v), want at least the %d that were acknowledged", uses, err, kinds["use"])
	}
	if len(kinds) < 7 {
		t.Errorf("only %v was acknowledged, want changes of every kind", kinds)
	}
}
