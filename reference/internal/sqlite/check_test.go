package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// filled makes a database with a row in each table, and returns its path and its key. All of
// them are copies of one.
func filled(t *testing.T) (string, store.Key) {
	t.Helper()
	filledOnce.Do(func() {
		path := tempDatabase(t)
		do(t, path, func(s *sqlite.Store) {
			filledKey = addKey(t, s, 1)
			_, _, err := s.CreatePetIf(t.Context(), store.NewPet{Name: "Rex"}, new(once("k")), nil)
			if err := errors.Join(err,
				s.AddDailyUse(t.Context(), store.DailyUse{Owner: "ada", Day: store.Day(now), Allowed: 1}),
				s.AddDeprecatedUse(t.Context(), store.DeprecatedUse{Operation: "getPet", Owner: "ada", Count: 1, Last: now}),
			); err != nil {
				t.Fatal(err)
			}
		})
		filledContent = readFile(t, path)
	})
	path := tempDatabase(t)
	writeFile(t, path, filledContent)
	return path, filledKey
}

var (
	filledOnce    sync.Once
	filledContent []byte
	filledKey     store.Key
)

func newKey(digest byte) store.NewKey {
	return store.NewKey{Digest: store.Digest{digest}, LastFour: "abcd", Name: "n", Owner: "ada", Plan: "free", Created: now}
}

func TestCheckOfASoundDatabase(t *testing.T) {
	path, _ := filled(t)
	before := readFile(t, path)
	for _, running := range []bool{false, true} {
		if running {
			s := open(t, path, sqlite.Options{})
			_, err := s.CreatePet(t.Context(), store.NewPet{Name: "Tom"})
			must(t, err)
		}
		r := checkSound(t, path)
		if r.Schema != r.Latest {
			t.Errorf("Check = %+v, want the latest schema", r)
		}
		pets := int64(1)
		if running {
			pets = 2
		} else if !bytes.Equal(before, readFile(t, path)) {
			t.Error("Check changed the file")
		}
		if len(r.Rows) != 7 || r.Rows["pets"] != pets || r.Rows["keys"] != 1 || r.Rows["audit"] != 1 {
			t.Errorf("Check counted %v, want the rows of each of 7 tables", r.Rows)
		}
	}
}

// The operator is not to restore a backup because a clock was wrong.
func TestCheckAllowsAClockThatStepsBack(t *testing.T) {
	path := tempDatabase(t)
	do(t, path, func(s *sqlite.Store) {
		rotate(t, s, addKey(t, s, 1), 2, now, 0)
		rotate(t, s, addKey(t, s, 3), 4, now.Add(-time.Hour), 0)
		_, err := s.RevokeKey(t.Context(), addKey(t, s, 5).ID, now.Add(-time.Hour), operator)
		must(t, err)
	})
	checkSound(t, path)
}

func TestCheckFinds(t *testing.T) {
	for _, tt := range []struct {
		name    string
		damaged bool
		harm    []string // statements
		want    string   // a problem
	}{
		{"a name that cannot be", false, []string{`UPDATE pets SET name = 'a' || char(10)`}, "pet 1: invalid: pet name must not have control characters"},
		{"a long name", false, []string{`UPDATE pets SET name = hex(zeroblob(200))`}, "pet 1: invalid: pet name must have 1 to 255 characters, got 400"},
		{"a status that does not exist", true, []string{`PRAGMA ignore_check_constraints = 1`, `UPDATE pets SET status = 'lost'`}, "CHECK constraint failed in pets"},
		{"an ID that is too small", false, []string{`UPDATE pets SET id = -7`}, "pet -7: invalid: the ID of a pet must be at least 1"},
		{"an ID that can be given twice", false, []string{`DELETE FROM sqlite_sequence`}, "pet 1: invalid: its ID could be given to another pet"},
		{"an idempotency key without its pet", false, []string{`UPDATE pets SET id = 9`}, "table idempotency_keys: 1 rows refer to rows of pets that do not exist"},
		{"quotas that are not text", false, []string{`UPDATE keys SET quotas = '[1]'`}, `name "quotas"`},
		{"a key that cannot be", false, []string{`UPDATE keys SET plan = char(27)`}, `": invalid: key plan must not have control characters`},
		{"a key ID that cannot be", false, []string{`UPDATE keys SET id = 'key_' || char(0)`}, `key "key_\x00": invalid: key ID must not have control characters`},
		{"a key without an ID", false, []string{`UPDATE keys SET id = ''`}, `key "": invalid: key ID must have 1 to 255 characters, got none`},
		{"a time that cannot be", false, []string{`UPDATE keys SET revoked = -9223372036854775808`}, `": invalid: end of the key must be in the years 1 to 9999, got the year -290308`},
		{"a day that cannot be", false, []string{`UPDATE daily_use SET day = 9223372036854775807`}, `daily use of "ada": invalid: `},
		{"a use that cannot be", false, []string{`UPDATE deprecated_use SET operation = ''`}, `deprecated use of "" by "ada": invalid: operation must have`},
		{"a use by day that cannot be", false, []string{`UPDATE deprecated_use_by_day SET owner = char(27)`}, `deprecated use by day of "getPet" by "\x1b": invalid: owner must`},
		{"an audit entry that cannot be", false, []string{`UPDATE audit SET actor = char(27)`}, "audit entry 1: invalid: actor must not have control characters"},
		{"a daily use that cannot be", false, []string{`UPDATE daily_use SET owner = char(27)`}, `daily use of "\x1b": invalid: owner must not`},
		{"an idempotency key that cannot be", false, []string{`UPDATE idempotency_keys SET key = char(27)`}, `idempotency key "\x1b" of "ada": invalid: `},
		{"many of a kind", false, []string{`INSERT INTO pets (name, category_id, status)
			WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 25) SELECT char(10), i, 'sold' FROM n`}, "and 5 more like these"},
		{"a missing table", true, []string{`DROP TABLE daily_use`}, "table daily_use is missing"},
		{"a missing column", true, []string{`ALTER TABLE pets RENAME COLUMN name TO title`}, "table pets is not as this program makes it"},
		{"a missing index", true, []string{`DROP INDEX pets_by_status`}, "index pets_by_status is missing"},
		{"a trigger", true, []string{`CREATE TRIGGER spy AFTER INSERT ON keys BEGIN SELECT 1; END`}, "trigger spy does not belong to this program"},
		{"a trigger with the name of a table", true, []string{`CREATE TRIGGER goose_db_version AFTER INSERT ON keys BEGIN SELECT 1; END`},
			"trigger goose_db_version does not belong to this program"},
		{"a view", true, []string{`CREATE VIEW spy AS SELECT digest FROM keys`}, "view spy does not belong to this program"},
		{"a table", true, []string{`CREATE TABLE spy (id)`}, "table spy does not belong to this program"},
		{"an index", true, []string{`CREATE UNIQUE INDEX spy ON pets (name)`}, "index spy does not belong to this program"},
		{"a missing row in an index", true, []string{`PRAGMA writable_schema = 1`,
			`UPDATE sqlite_schema SET sql = 'CREATE INDEX pets_by_status ON pets (name)' WHERE name = 'pets_by_status'`}, "pets_by_status"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path, _ := filled(t)
			db := raw(t, path)
			execute(t, db, tt.harm...)
			db.Close()
			r, err := sqlite.Check(t.Context(), path, sqlite.Options{})
			if err != nil || r.Damaged != tt.damaged || !strings.Contains(strings.Join(r.Problems, "\n"), tt.want) {
				t.Errorf("Check = %q, damaged %v (%v), want %q, damaged %v", r.Problems, r.Damaged, err, tt.want, tt.damaged)
			}
		})
	}
}

func TestCheckOfADamagedFile(t *testing.T) {
	for name, harm := range map[string]func([]byte) []byte{
		"overwritten in the middle": func(b []byte) []byte {
			return append(append(b[:4096:4096], bytes.Repeat([]byte{0xff}, 8192)...), b[3*4096:]...)
		},
		"cut off":            func(b []byte) []byte { return b[:5*4096] },
		"overwritten header": func(b []byte) []byte { return append(bytes.Repeat([]byte{'x'}, 100), b[100:]...) },
		"overwritten schema": func(b []byte) []byte {
			return append(append(b[:100:100], bytes.Repeat([]byte{0xff}, 1000)...), b[1100:]...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path, _ := filled(t)
			writeFile(t, path, harm(readFile(t, path)))
			r, err := sqlite.Check(t.Context(), path, sqlite.Options{})
			if notOne := name == "overwritten header"; notOne != sqlite.IsDamaged(err) || notOne == (r.Damaged && len(r.Problems) > 0) {
				t.Errorf("Check = %+v, %v, want that the file is damaged, or an error if it is not a database", r, err)
			}
			to := filepath.Join(t.TempDir(), "backup.db")
			if r, err := sqlite.Backup(t.Context(), path, to, sqlite.Options{}); err == nil {
				t.Errorf("Backup = %+v, want an error", r)
			}
			if left, _ := filepath.Glob(to + "*"); len(left) > 0 {
				t.Errorf("%v is left of a backup that failed", left)
			}
		})
	}
}

// SQLite reports all of them in one text with a heading.
func TestCheckOfPagesThatBelongToNothing(t *testing.T) {
	path, _ := filled(t)
	b := readFile(t, path)
	pages := len(b) / 4096
	b[31] += 2 // the number of pages
	writeFile(t, path, append(b, make([]byte, 2*4096)...))
	r, err := sqlite.Check(t.Context(), path, sqlite.Options{})
	want := []string{fmt.Sprintf("Page %d: never used", pages+1), fmt.Sprintf("Page %d: never used", pages+2)}
	if err != nil || !r.Damaged || !slices.Equal(r.Problems, want) {
		t.Errorf("Check = %+v, %v, want the problems %q", r, err, want)
	}
}

func TestCheckRefuses(t *testing.T) {
	path, _ := filled(t)
	if _, err := sqlite.Check(t.Context(), path+"x", sqlite.Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Check of no file = %v, want an error that wraps fs.ErrNotExist", err)
	}
	if _, err := sqlite.CheckUsage(t.Context(), path, sqlite.Options{}, func(store.Usage) error { return nil }); err == nil || !strings.Contains(err.Error(), "belongs to another program") {
		t.Errorf("CheckUsage of a database = %v, want that it belongs to another program", err)
	}
	execute(t, raw(t, path), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, TRUE)")
	for name, check := range map[string]func() (sqlite.Report, error){
		"Check": func() (sqlite.Report, error) { return sqlite.Check(t.Context(), path, sqlite.Options{}) },
		"Backup": func() (sqlite.Report, error) {
			return sqlite.Backup(t.Context(), path, path+".backup", sqlite.Options{})
		},
	} {
		if _, err := check(); err == nil || !strings.Contains(err.Error(), "a newer version of this program wrote it (schema 99, ") {
			t.Errorf("%s of a newer version = %v, want that it is newer", name, err)
		}
	}
}

func TestCheckOfAnOlderSchema(t *testing.T) {
	path, _ := filled(t)
	execute(t, raw(t, path), "UPDATE pets SET name = char(10)")
	sqlite.AddMigrations(t, addToys)
	if r := checkSound(t, path); r.Schema != sqlite.Version || r.Latest != sqlite.Version+1 || r.Rows["pets"] != 1 {
		t.Errorf("Check = %+v, want the older schema, whose rows are not examined", r)
	}
}

func TestCheckUsage(t *testing.T) {
	path := sqlite.UsagePath(tempDatabase(t))
	if _, err := sqlite.CheckUsage(t.Context(), path, sqlite.Options{}, doNotLoad); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("CheckUsage of no file = %v, want an error that wraps fs.ErrNotExist", err)
	}
	u, err := sqlite.OpenUsage(t.Context(), path, sqlite.Options{})
	must(t, err)
	for i := range uint64(100) {
		must(t, u.SaveUsage(t.Context(), nil, []memory.Record{{Key: i, Data: []byte("x"), Expires: 4_000_000_000}}))
	}
	if r, err := sqlite.CheckUsage(t.Context(), path, sqlite.Options{BusyTimeout: 20 * time.Millisecond}, doNotLoad); !errors.Is(err, sqlite.ErrInUse) {
		t.Errorf("CheckUsage while a server runs = %+v, %v, want an error that wraps ErrInUse", r, err)
	}
	must(t, u.Close())
	r, err := sqlite.CheckUsage(t.Context(), path, sqlite.Options{}, doNotLoad)
	if err != nil || len(r.Problems) > 0 || r.Rows["changes"] != 100 {
		t.Errorf("CheckUsage = %+v, %v, want a sound file with 100 changes", r, err)
	}
	content := readFile(t, path)
	writeFile(t, path, content[:len(content)-4096])
	if r, err = sqlite.CheckUsage(t.Context(), path, sqlite.Options{}, doNotLoad); err != nil || !r.Damaged {
		t.Errorf("CheckUsage of a file that is cut off = %+v, %v, want that it is damaged", r, err)
	}
}

func doNotLoad(store.Usage) error { return nil }

func checkUsageOnly(ctx context.Context, path string) error {
	n, found := 0, ""
	_, err := sqlite.CheckUsage(ctx, sqlite.UsagePath(path), sqlite.Options{}, func(u store.Usage) error {
		return u.LoadUsage(ctx, func(header []byte, portions iter.Seq[[]memory.Record]) error {
			found = string(header)
			for portion := range portions {
				n += len(portion)
			}
			return nil
		})
	})
	if err == nil && (found != "h" || n != 1) {
		err = fmt.Errorf("%d records with the header %q, want 1 with h", n, found)
	}
	return err
}
