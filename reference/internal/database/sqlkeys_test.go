//go:build unix

package database_test

import (
	"database/sql"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/apikey/sqlkeys"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
)

// A keyDB is a database of package sqlkeys.
type keyDB struct {
	*sql.DB
	table func(sqlkeys.DB) *sqlkeys.Table

	// refuseExpiry is a statement that has every later change of an expiry fail.
	refuseExpiry string
}

// onEachDatabase runs a test with an empty table of keys.
func onEachDatabase(t *testing.T, test func(*testing.T, keyDB)) {
	run := func(name, driver string, dsn func(testing.TB) string, table func(sqlkeys.DB) *sqlkeys.Table, refuseExpiry string) {
		t.Run(name, func(t *testing.T) {
			db, err := sql.Open(driver, dsn(t))
			must(t, err)
			t.Cleanup(func() { db.Close() })
			for range 2 { // the second time, the table is there
				_, err = db.ExecContext(t.Context(), table(db).Schema())
				must(t, err)
			}
			test(t, keyDB{db, table, refuseExpiry})
		})
	}
	run("SQLite", "sqlite", func(t testing.TB) string {
		return filepath.Join(t.TempDir(), "keys.db") + "?_pragma=busy_timeout(60000)&_pragma=journal_mode(WAL)"
	}, sqlkeys.NewSQLite, `CREATE TRIGGER refuse BEFORE UPDATE OF expires ON keys BEGIN SELECT RAISE(ABORT, 'refused'); END`)
	for _, mode := range []string{"cache_statement", "exec", "simple_protocol"} {
		run("PostgreSQL, "+mode, "pgx", func(t testing.TB) string {
			return postgrestest.Database(t) + "&default_query_exec_mode=" + mode
		}, sqlkeys.NewPostgreSQL, `ALTER TABLE keys ADD CHECK (expires IS NULL)`)
	}
}

// A random history has the results of a model, through a database, a connection and a
// transaction, which can go on after each error.
func TestKeysAgreeWithAModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	onEachDatabase(t, func(t *testing.T, db keyDB) {
		conn, err := db.Conn(t.Context())
		must(t, err)
		defer conn.Close()
		h := &keyHistory{Rand: rand.New(rand.NewPCG(seed, 0))}
		for range 4 {
			for range 50 {
				h.call(t, db.table(db))
				h.call(t, db.table(conn))
			}
			tx, err := db.BeginTx(t.Context(), nil)
			must(t, err)
			before := slices.Clone(h.keys)
			for range 50 {
				h.call(t, db.table(tx))
			}
			if h.IntN(2) == 0 {
				must(t, tx.Commit())
			} else {
				must(t, tx.Rollback())
				h.keys = before
			}
		}
	})
}

// A keyHistory makes random calls, and knows what must become of them.
type keyHistory struct {
	*rand.Rand
	keys []sqlkeys.Key // in the order in which they were made
}

// call makes one call. The model panics if it is wrong.
func (h *keyHistory) call(t *testing.T, table *sqlkeys.Table) {
	t.Helper()
	ctx, at, k := t.Context(), h.time(), h.newKey()
	id, digest := h.id(), h.digest()
	i := slices.IndexFunc(h.keys, func(k sqlkeys.Key) bool { return k.ID == id })
	switch h.IntN(9) {
	case 0:
		got, err := table.Create(ctx, k)
		h.created(t, "Create", k, got, err, nil)
	case 1:
		var want error
		if len(h.keys) > 0 {
			want = sqlkeys.ErrExists
		}
		got, err := table.CreateFirst(ctx, k)
		h.created(t, "CreateFirst", k, got, err, want)
	case 2:
		got, err := table.ByID(ctx, id)
		h.found(t, "ByID", i, got, err)
	case 3:
		i := slices.IndexFunc(h.keys, func(k sqlkeys.Key) bool { return k.Digest == digest })
		got, err := table.ByDigest(ctx, digest)
		h.found(t, "ByDigest", i, got, err)
	case 4:
		h.list(t, table, h.pick("", "ada", "bob", "\x00", "\xff"))
	case 5:
		fresh := i >= 0 && h.keys[i].Revoked.IsZero()
		if fresh {
			h.keys[i].Revoked = cut(at)
		}
		got, changed, err := table.Revoke(ctx, id, at)
		h.found(t, "Revoke", i, got, err)
		if changed != fresh {
			t.Fatalf("Revoke(%v) says that it has changed the key: %v, want %v", h.keys[i], changed, fresh)
		}
	case 6:
		if i >= 0 && (h.keys[i].LastUsed.IsZero() || h.keys[i].LastUsed.Before(cut(at))) {
			h.keys[i].LastUsed = cut(at)
		}
		must(t, table.Used(ctx, id, at))
	default:
		k := sqlkeys.NewKey{Digest: digest, LastFour: "wxyz", Created: at}
		h.rotate(t, table, id, i, k, time.Duration(h.IntN(3))*time.Second)
	}
}

// created checks the result of a call that stores a key, unless it must fail.
func (h *keyHistory) created(t *testing.T, call string, k sqlkeys.NewKey, got sqlkeys.Key, err, want error) {
	t.Helper()
	switch {
	case k.Owner == "" || !k.Expires.IsZero() && !cut(k.Expires).After(cut(k.Created)):
		want = sqlkeys.ErrInvalid
	case slices.ContainsFunc(h.keys, func(other sqlkeys.Key) bool { return other.Digest == k.Digest }):
		want = sqlkeys.ErrExists
	}
	if !errors.Is(err, want) || want == nil && err != nil {
		t.Fatalf("%s(%+v) = %v, want %v", call, k, err, want)
	}
	if err != nil {
		return
	}
	key := sqlkeys.Key{ID: got.ID, NewKey: k}
	key.Created, key.Expires = cut(k.Created), cut(k.Expires)
	if len(k.Quotas) == 0 {
		key.Quotas = nil
	}
	if diff := cmp.Diff(key, got); diff != "" || !strings.HasPrefix(got.ID, "key_") {
		t.Fatalf("%s returned another key (-want +got):\n%s", call, diff)
	}
	h.keys = append(h.keys, key)
}

// found checks the result of a call that returns the key with an index; -1: there is none.
func (h *keyHistory) found(t *testing.T, call string, i int, got sqlkeys.Key, err error) {
	t.Helper()
	if i < 0 {
		if !errors.Is(err, sqlkeys.ErrNotFound) {
			t.Fatalf("%s of no key = %v, %v, want ErrNotFound", call, got, err)
		}
		return
	}
	must(t, err)
	if diff := cmp.Diff(h.keys[i], got); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", call, diff)
	}
}

func (h *keyHistory) list(t *testing.T, table *sqlkeys.Table, owner string) {
	t.Helper()
	want := []sqlkeys.Key{}
	for _, k := range h.keys {
		if owner == "" || k.Owner == owner {
			want = append(want, k)
		}
	}
	slices.SortFunc(want, func(a, b sqlkeys.Key) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	got, err := table.List(t.Context(), owner)
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("List(%q) (-want +got):\n%s", owner, diff)
	}
}

func (h *keyHistory) rotate(t *testing.T, table *sqlkeys.Table, id string, i int, k sqlkeys.NewKey, overlap time.Duration) {
	t.Helper()
	old, fresh, err := table.Rotate(t.Context(), id, k, overlap)
	if i < 0 || !h.keys[i].Active(k.Created) {
		want := sqlkeys.ErrInactive
		if i < 0 {
			want = sqlkeys.ErrNotFound
		}
		if !errors.Is(err, want) {
			t.Fatalf("Rotate(%+v) = %v, want %v", k, err, want)
		}
		return
	}
	next := h.keys[i].NewKey
	next.Digest, next.LastFour, next.Created, next.Expires = k.Digest, k.LastFour, k.Created, k.Expires
	if h.created(t, "Rotate", next, fresh, err, nil); err != nil {
		return
	}
	end := cut(k.Created.Add(overlap))
	if before := &h.keys[i]; before.Expires.IsZero() || before.Expires.After(end) {
		before.Expires = end
	}
	h.found(t, "Rotate", i, old, nil)
}

func (h *keyHistory) pick(all ...string) string { return all[h.IntN(len(all))] }

func (h *keyHistory) digest() apikey.Digest {
	return apikey.Digest{1 + byte(h.IntN(60)), 0, '\\', 0xff}
}

// cut returns a time as it is stored.
func cut(at time.Time) time.Time { return at.UTC().Truncate(time.Microsecond) }

// time returns one of a few, the first or the last that can be stored.
func (h *keyHistory) time() time.Time {
	switch h.IntN(20) {
	case 0:
		return time.Time{}.Add(time.Microsecond)
	case 1:
		return time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
	}
	return time.Date(2026, 5, 4, 12, 0, h.IntN(4), h.IntN(5000), time.FixedZone("X", 3600))
}

// id returns that of a key, or one that is no key.
func (h *keyHistory) id() string {
	if len(h.keys) > 0 && h.IntN(4) > 0 {
		return h.keys[h.IntN(len(h.keys))].ID
	}
	return h.pick("", "key_", "%", "\x00", "\xff", strings.Repeat("x", 1<<16))
}

func (h *keyHistory) newKey() sqlkeys.NewKey {
	k := sqlkeys.NewKey{
		Digest: h.digest(), LastFour: h.pick("abcd", `\'"%`), Name: h.pick("", "größe 🐈", "a\tb"), Owner: h.pick("ada", "bob", "bob", ""), Plan: "free",
		Quotas: [][]string{nil, {}, {"5/minute", `NULL`, `"`, `\`, "{}", ",", ""}}[h.IntN(3)], Limits: [][]string{nil, {"3/minute", "5/2s"}}[h.IntN(2)], Created: h.time(),
	}
	if h.IntN(2) == 0 {
		k.Expires = h.time()
	}
	return k
}

// Of calls at the same time, one stores the first key, one replaces a key and one revokes it.
func TestKeysChangeOnce(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db keyDB) {
		table := db.table(db)
		newKey := func(n int) sqlkeys.NewKey {
			return sqlkeys.NewKey{Digest: apikey.Digest{1 + byte(n)}, LastFour: "abcd", Owner: "ada", Plan: "free", Created: noon}
		}
		once(t, "CreateFirst", sqlkeys.ErrExists, func(i int) (bool, error) {
			_, err := table.CreateFirst(t.Context(), newKey(i))
			return err == nil, err
		})
		first, err := table.List(t.Context(), "")
		must(t, err)
		_, _, err = table.Revoke(t.Context(), first[0].ID, noon)
		must(t, err)
		if _, err := table.CreateFirst(t.Context(), newKey(100)); !errors.Is(err, sqlkeys.ErrExists) {
			t.Errorf("CreateFirst beside a revoked key = %v, want ErrExists", err)
		}
		key, err := table.Create(t.Context(), newKey(100))
		must(t, err)
		once(t, "Rotate", sqlkeys.ErrInactive, func(i int) (bool, error) {
			_, _, err := table.Rotate(t.Context(), key.ID, sqlkeys.NewKey{Digest: apikey.Digest{200 + byte(i)}, LastFour: "wxyz", Created: noon}, 0)
			return err == nil, err
		})
		once(t, "Revoke", nil, func(i int) (bool, error) {
			_, changed, err := table.Revoke(t.Context(), key.ID, noon.Add(time.Duration(i)*time.Second))
			return changed, err
		})
		all, err := table.List(t.Context(), "")
		must(t, err)
		if len(all) != 3 {
			t.Errorf("%d keys are stored, want 3", len(all))
		}
	})
}

// once makes calls at the same time, of which one must report that it made a change. Others may
// fail with an error.
func once(t *testing.T, name string, allowed error, call func(i int) (changed bool, err error)) {
	t.Helper()
	var changes atomic.Int32
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			changed, err := call(i)
			if changed {
				changes.Add(1)
			}
			if err != nil && !errors.Is(err, allowed) {
				t.Errorf("%s = %v", name, err)
			}
		})
	}
	wg.Wait()
	if n := changes.Load(); n != 1 {
		t.Errorf("%d of 12 calls of %s at the same time made a change, want 1", n, name)
	}
}

// If the old key of a rotation cannot be ended, there is no new one.
func TestRotateChangesBothKeysOrNone(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db keyDB) {
		table := db.table(db)
		key, err := table.Create(t.Context(), sqlkeys.NewKey{Digest: apikey.Digest{1}, LastFour: "abcd", Owner: "ada", Plan: "free", Created: noon})
		must(t, err)
		_, err = db.ExecContext(t.Context(), db.refuseExpiry)
		must(t, err)
		next := sqlkeys.NewKey{Digest: apikey.Digest{2}, LastFour: "wxyz", Created: noon}
		if _, _, err := table.Rotate(t.Context(), key.ID, next, 0); err == nil {
			t.Fatal("Rotate = nil, and the database refused the expiry")
		}
		all, err := table.List(t.Context(), "")
		must(t, err)
		if diff := cmp.Diff([]sqlkeys.Key{key}, all); diff != "" {
			t.Errorf("after a rotation that failed (-want +got):\n%s", diff)
		}
	})
}

// The server's tables can be used by the package, and its by the server.
func TestTheTableOfTheServerIsThatOfThePackage(t *testing.T) {
	for _, tt := range []struct {
		driver, name string
		table        *sqlkeys.Table
		query        string // describes the table in one row
	}{
		{"sqlite", filepath.Join(t.TempDir(), "petstore.db"), sqlkeys.NewSQLite(nil), `SELECT sql FROM sqlite_schema WHERE name = 'keys'`},
		{"pgx", postgrestest.Database(t), sqlkeys.NewPostgreSQL(nil), `SELECT string_agg(text, '; ' ORDER BY text) FROM (
			SELECT attname || ' ' || attnum || ' ' || format_type(atttypid, atttypmod) || ' ' || attnotnull || ' ' || attcollation AS text
			FROM pg_attribute WHERE attrelid = 'keys'::regclass AND attnum > 0
			UNION SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'keys'::regclass
			UNION SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'keys'::regclass) AS parts`},
	} {
		open(t, tt.name)
		db, err := sql.Open(tt.driver, tt.name)
		must(t, err)
		defer db.Close()
		var migrated, made string
		must(t, db.QueryRowContext(t.Context(), tt.query).Scan(&migrated))
		for _, statement := range []string{"DROP TABLE keys", tt.table.Schema()} {
			_, err := db.ExecContext(t.Context(), statement)
			must(t, err)
		}
		must(t, db.QueryRowContext(t.Context(), tt.query).Scan(&made))
		withoutSpace := func(text string) string { return strings.Join(strings.Fields(text), "") }
		if diff := cmp.Diff(withoutSpace(made), withoutSpace(migrated)); diff != "" {
			t.Errorf("%s: the table of the migrations is not that of package sqlkeys (-package +migrations):\n%s", tt.driver, diff)
		}
	}
}
