//go:build unix

package database_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/reference/internal/database"
	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

var must = testcheck.NoError

// open opens a database until the test ends.
func open(t *testing.T, name string) store.Store {
	t.Helper()
	s, err := database.Open(t.Context(), name, database.Options{})
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

var (
	noon     = time.Date(2026, time.May, 4, 12, 0, 0, 123_456_000, time.UTC)
	operator = store.Actor{Name: "cli:ada@host", From: "192.0.2.1"}

	// Texts that a careless copy changes, and that sort differently by language.
	hostile = []string{
		`\N`, `\.`, `a\tb\\`, `NULL`, `"quoted", {braces}`, "'; DROP TABLE pets; --", " space ", "é", "e\u0301", "Zoë", "zebra", "\u202egnp",
		"\U0001F415\u200d\U0001F9BA", "\u00ad", strings.Repeat("\U0001F408", store.MaxText),
	}
)

// fill makes a SQLite file with everything that a server can have stored, and returns it.
func fill(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pets.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	must(t, err)
	ctx := t.Context()
	for i, name := range hostile {
		status := []store.Status{store.Available, store.Pending, store.Sold}[i%3]
		_, err := s.CreatePet(ctx, store.NewPet{Name: name, CategoryID: int64(i) - 3<<40, Status: status})
		must(t, err)
		_, _, err = s.CreatePetOnce(ctx, store.NewPet{Name: name}, request(i))
		must(t, err)
		k, err := s.CreateKey(ctx, store.NewKey{
			Digest: store.Digest{1, byte(i)}, LastFour: "abcd", Name: name, Owner: name, Plan: name, Created: noon.Add(-time.Duration(i%4) * time.Hour),
		}, store.Actor{Name: name, From: name})
		must(t, err)
		if i%3 == 1 {
			_, err = s.RevokeKey(ctx, k.ID, noon, operator)
			must(t, err)
		}
		must(t, s.AddAudit(ctx, store.AuditEntry{At: noon, Actor: name, Action: "ban.end", Target: name, Detail: name}))
		must(t, s.AddDeprecatedUse(ctx,
			store.DeprecatedUse{Operation: "getPet", Owner: name, Count: 3, Last: noon.AddDate(0, 0, -i)},
			store.DeprecatedUse{Operation: "getPet", Owner: name, Count: 1<<60 + 1, Last: noon}))
		must(t, s.AddDailyUse(ctx,
			store.DailyUse{Owner: name, Day: store.Day(noon), Allowed: 1 << 60, Denied: int64(i)},
			store.DailyUse{Owner: name, Day: store.Day(noon).AddDate(-60, 0, -i), Allowed: 1}))
	}
	limited, err := s.CreateKey(ctx, store.NewKey{
		Digest: store.Digest{2}, LastFour: "wxyz", Name: "limited", Owner: "bob", Plan: "enterprise",
		Quotas: []string{"5/second", "100/minute"}, Limits: []string{"2/minute"}, Created: noon, Expires: noon.Add(time.Hour),
	}, operator)
	must(t, err)
	_, err = s.RotateKey(ctx, limited.ID, store.Rotation{Digest: store.Digest{3}, LastFour: "qrst", At: noon.Add(time.Second), Overlap: time.Minute}, operator)
	must(t, err)
	must(t, s.Close())
	// Pets that were deleted leave gaps, also at the end. SQLite keeps the last IDs in an ordinary
	// table, which a program that repairs a file may leave incomplete. It still gives an ID that is
	// larger than all others, and so must PostgreSQL.
	db, err := sql.Open("sqlite", path+"?_pragma=foreign_keys(1)")
	must(t, err)
	_, err = db.Exec(`DELETE FROM pets WHERE id IN (1, 3, 4); UPDATE sqlite_sequence SET seq = 7000 WHERE name = 'pets';
		DELETE FROM sqlite_sequence WHERE name = 'audit'`)
	must(t, errors.Join(err, db.Close()))
	return path
}

func request(i int) store.IdempotencyKey {
	return store.IdempotencyKey{Owner: hostile[i], Key: hostile[len(hostile)-1-i], Fingerprint: [32]byte{9, byte(i)}, At: noon}
}

func TestImport(t *testing.T) {
	file, url := fill(t), postgrestest.Database(t)
	before, err := os.ReadFile(file)
	must(t, err)
	n, err := database.Import(t.Context(), url, file, operator, noon.Add(time.Hour), database.Options{})
	must(t, err)
	if want := (database.Imported{Pets: int64(2*len(hostile) - 3), Keys: int64(len(hostile) + 2)}); n != want {
		t.Errorf("Import = %+v, want %+v", n, want)
	}
	after, err := os.ReadFile(file)
	must(t, err)
	if left, _ := filepath.Glob(file + "?*"); !bytes.Equal(before, after) || len(left) > 0 {
		t.Errorf("the import changed the file, or left %v beside it", left)
	}
	// Nothing is imported into a database that has anything.
	_, err = database.Import(t.Context(), url, file, operator, noon, database.Options{})
	if want := ": not empty: it has rows in pets, idempotency_keys, keys, audit, daily_use, deprecated_use, deprecated_use_by_day; import before"; !errors.Is(err, postgres.ErrNotEmpty) || !strings.Contains(err.Error(), want) {
		t.Errorf("the second import = %v, want ErrNotEmpty and %q", err, want)
	}
	from, to := open(t, file), open(t, url)
	want, got := answers(t, from), answers(t, to)
	entry := store.AuditEntry{
		ID: got.audit[0].ID, At: noon.Add(time.Hour), Actor: operator.Name, From: operator.From, Action: "database.import", Target: file,
		Detail: fmt.Sprintf(`pets="%d" keys="%d"`, n.Pets, n.Keys),
	}
	if diff := cmp.Diff(entry, got.audit[0]); diff != "" || entry.ID <= want.audit[len(want.audit)-1].ID {
		t.Errorf("the newest entry (-want +got):\n%s", diff)
	}
	got.audit = got.audit[1:]
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(everything{})); diff != "" {
		t.Errorf("SQLite and PostgreSQL answer differently (-SQLite +PostgreSQL):\n%s", diff)
	}
	// Writes go on in both in the same way.
	for i := range hostile {
		wantPet, wantReplay, wantErr := from.CreatePetOnce(t.Context(), store.NewPet{Name: "new"}, request(i))
		pet, replay, err := to.CreatePetOnce(t.Context(), store.NewPet{Name: "new"}, request(i))
		if pet != wantPet || replay != wantReplay || err != nil || wantErr != nil {
			t.Errorf("request %d: PostgreSQL answers %+v, %v, %v, SQLite %+v, %v, %v", i, pet, replay, err, wantPet, wantReplay, wantErr)
		}
	}
	changed := request(5)
	changed.Fingerprint[0]++
	if _, _, err := to.CreatePetOnce(t.Context(), store.NewPet{Name: "new"}, changed); !errors.Is(err, store.ErrMismatch) {
		t.Errorf("a request that was changed = %v, want ErrMismatch", err)
	}
	must(t, to.AddAudit(t.Context(), store.AuditEntry{At: noon, Actor: "ada", Action: "ban.end", Target: "bob"}))
	for range 2 {
		want, err := from.CreatePet(t.Context(), store.NewPet{Name: "new"})
		must(t, err)
		if pet, err := to.CreatePet(t.Context(), store.NewPet{Name: "new"}); err != nil || pet != want || pet.ID <= 7000 {
			t.Errorf("a new pet is %+v (%v), want %+v with an ID over 7000", pet, err, want)
		}
	}
}

// everything is what a store answers.
type everything struct {
	pets     map[store.Status][]store.Pet
	byID     []store.Pet
	keys     []store.Key
	byDigest []store.Key
	audit    []store.AuditEntry
	daily    map[string][]store.DailyUse
	use      map[int][]store.DeprecatedUse
}

func answers(t *testing.T, s store.Store) everything {
	t.Helper()
	ctx := t.Context()
	e := everything{pets: map[store.Status][]store.Pet{}, daily: map[string][]store.DailyUse{}, use: map[int][]store.DeprecatedUse{}}
	for _, status := range []store.Status{"", store.Available, store.Pending, store.Sold} {
		q := store.ListQuery{Limit: 4, Status: status}
		for more := true; more; {
			page, next, err := s.ListPets(ctx, q)
			must(t, err)
			e.pets[status] = append(e.pets[status], page...)
			if more = next; more {
				q.After = page[len(page)-1].ID
			}
		}
	}
	for id := range int64(40) {
		pet, err := s.Pet(ctx, id)
		if !errors.Is(err, store.ErrNotFound) {
			must(t, err)
		}
		e.byID = append(e.byID, pet)
	}
	var err error
	e.keys, err = s.ListKeys(ctx)
	must(t, err)
	for _, k := range e.keys {
		found, err := s.KeyByDigest(ctx, k.Digest)
		must(t, err)
		same, err := s.Key(ctx, k.ID)
		must(t, err)
		e.byDigest = append(e.byDigest, found, same)
	}
	e.audit, err = s.ListAudit(ctx, store.AuditQuery{Limit: store.MaxAudit})
	must(t, err)
	for _, owner := range append(slices.Clone(hostile), "bob") {
		e.daily[owner], err = s.ListDailyUse(ctx, owner, time.Time{}.AddDate(1900, 0, 0))
		must(t, err)
	}
	for _, days := range []int{0, 1, 5, 400} {
		e.use[days], err = s.ListDeprecatedUse(ctx, noon.AddDate(0, 0, -days))
		must(t, err)
	}
	return e
}
