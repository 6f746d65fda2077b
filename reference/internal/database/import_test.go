//go:build unix

package database_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/reference/internal/database"
	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
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
)

// fill makes a SQLite file with what a server can have stored, and returns the engine that has made
// its calls.
func fill(t *testing.T, file string, seed uint64) *engine {
	t.Helper()
	ctx, e := t.Context(), newEngine(t, file, seed)
	for range 300 {
		e.call(ctx)
	}
	for i, owner := range []string{`\N`, `\.`, `a\tb\\`, `"quoted", {braces}`, "ada"} {
		k, err := e.s.CreateKey(ctx, store.NewKey{
			Digest: store.Digest{1, byte(i)}, LastFour: "abcd", Name: owner, Owner: owner, Plan: "enterprise", Created: noon,
			Quotas: []string{"5/second", "100/minute"}, Limits: []string{"2/minute"}, Expires: noon.Add(time.Hour),
		}, operator)
		must(t, err)
		switch i % 3 {
		case 1:
			_, err = e.s.RevokeKey(ctx, k.ID, noon, operator)
		case 2:
			_, err = e.s.RotateKey(ctx, k.ID, store.Rotation{Digest: store.Digest{3}, LastFour: "qrst", At: noon, Overlap: time.Minute}, operator)
		}
		_, _, onceErr := e.s.CreatePetOnce(ctx, store.NewPet{Name: owner}, store.IdempotencyKey{Owner: owner, Key: owner, At: e.now})
		must(t, errors.Join(err, onceErr,
			e.s.AddDailyUse(ctx, store.DailyUse{Owner: owner, Day: store.Day(noon), Allowed: 1 << 60}),
			e.s.AddDeprecatedUse(ctx, store.DeprecatedUse{Operation: "getPet", Owner: owner, Count: 1<<60 + 1, Last: noon})))
	}
	must(t, e.s.Close())
	// Pets that were deleted leave gaps, also at the end. SQLite keeps the last IDs in an ordinary
	// table, which a program that repairs a file may leave incomplete. It still gives an ID that is
	// larger than all others, and so must PostgreSQL.
	db, err := sql.Open("sqlite", file+"?_pragma=foreign_keys(1)")
	must(t, err)
	_, err = db.Exec(`DELETE FROM pets WHERE id % 4 = 1; UPDATE sqlite_sequence SET seq = 7000 WHERE name = 'pets';
		DELETE FROM sqlite_sequence WHERE name = 'audit'`)
	must(t, errors.Join(err, db.Close()))
	return e
}

// A SQLite file and the PostgreSQL database that it was imported into give the same answers to the
// same calls.
func TestImport(t *testing.T) {
	file, url := filepath.Join(t.TempDir(), "pets.db"), postgrestest.Database(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	filled := fill(t, file, seed)
	before, err := os.ReadFile(file)
	must(t, err)
	n, err := database.Import(t.Context(), url, file, operator, noon.Add(time.Hour), database.Options{})
	must(t, err)
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
	want, err := from.ListKeys(t.Context())
	must(t, err)
	got, err := to.ListKeys(t.Context())
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" || n.Keys != int64(len(want)) {
		t.Errorf("%d keys are imported (-SQLite +PostgreSQL):\n%s", n.Keys, diff)
	}
	wantPet, err := from.CreatePet(t.Context(), store.NewPet{Name: "new"})
	must(t, err)
	if pet, err := to.CreatePet(t.Context(), store.NewPet{Name: "new"}); err != nil || pet != wantPet || pet.ID <= 7000 {
		t.Errorf("a new pet is %+v (%v), want %+v with an ID over 7000", pet, err, wantPet)
	}
	// The audit log of PostgreSQL has one entry more.
	must(t, from.AddAudit(t.Context(), store.AuditEntry{
		At: noon.Add(time.Hour), Actor: operator.Name, From: operator.From, Action: "database.import", Target: file,
		Detail: fmt.Sprintf(`pets="%d" keys="%d"`, n.Pets, n.Keys),
	}))
	agree(t, filled.again(from), map[string]*engine{"imported": filled.again(to)})
}
