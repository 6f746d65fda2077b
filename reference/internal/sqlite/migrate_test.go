package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/pressly/goose/v3"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// migrateTo makes a database as a version of the program that knew only the
// first migrations would have.
func migrateTo(t *testing.T, path string, s schema, version int64) {
	t.Helper()
	f, err := newFile(path, Options{}.withDefaults().BusyTimeout)
	if err != nil {
		t.Fatal(err)
	}
	db, err := f.connect(1)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	folder, err := fs.Sub(migrations, s.folder)
	if err != nil {
		t.Fatal(err)
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, folder, goose.WithLogger(goose.NopLogger()))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.useWAL(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if version > 0 {
		if _, err := provider.UpTo(t.Context(), version); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec("INSERT INTO pets (name, category_id, status) VALUES ('Rex', 1, 'sold')"); err != nil {
			t.Fatal(err)
		}
	} else if _, err := provider.GetDBVersion(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestUpgradeFromEveryVersion(t *testing.T) {
	sources, err := fs.Glob(migrations, mainSchema.folder+"/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for version := range int64(len(sources) + 1) {
		t.Run(fmt.Sprintf("version %d", version), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pets.db")
			migrateTo(t, path, mainSchema, version)

			// Twice: the second time there is nothing to do.
			for range 2 {
				s, err := Open(t.Context(), path, Options{})
				if err != nil {
					t.Fatalf("Open = %v", err)
				}
				if version > 0 {
					want := store.Pet{ID: 1, Name: "Rex", CategoryID: 1, Status: store.Sold}
					if got, err := s.Pet(t.Context(), 1); err != nil || got != want {
						t.Errorf("the pet of the older version is now %+v, %v, want %+v", got, err, want)
					}
				}
				if _, err := s.ListKeys(t.Context()); err != nil {
					t.Errorf("ListKeys = %v", err)
				}
				if got, want := s.version(t), int64(len(sources)); got != want {
					t.Errorf("the schema has version %d, want %d", got, want)
				}
				if err := s.Close(); err != nil {
					t.Errorf("Close = %v", err)
				}
			}
		})
	}
}

func (s *Store) version(t *testing.T) int64 {
	t.Helper()
	version, err := s.inspect(t.Context(), s.reads, mainSchema)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

func TestConnectionsAreSafe(t *testing.T) {
	s := openTest(t)
	u, err := OpenUsage(t.Context(), UsagePath(s.path), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	const full, normal = "2", "1" // of PRAGMA synchronous
	for _, tt := range []struct {
		connection string
		query      interface {
			scan(t *testing.T, text string) string
		}
		pragma, want string
	}{
		{"pets, writing", inWriter{s}, "journal_mode", "wal"},
		{"pets, writing", inWriter{s}, "synchronous", full},
		{"pets, writing", inWriter{s}, "fullfsync", "1"},
		{"pets, writing", inWriter{s}, "foreign_keys", "1"},
		{"pets, writing", inWriter{s}, "busy_timeout", "5000"},
		{"pets, reading", inPool{s.reads}, "query_only", "1"},
		{"pets, reading", inPool{s.reads}, "busy_timeout", "5000"},
		{"usage", inPool{u.db}, "journal_mode", "wal"},
		{"usage", inPool{u.db}, "synchronous", normal},
		{"usage", inPool{u.db}, "locking_mode", "exclusive"},
	} {
		if got := tt.query.scan(t, "PRAGMA "+tt.pragma); got != tt.want {
			t.Errorf("%s: PRAGMA %s is %s, want %s", tt.connection, tt.pragma, got, tt.want)
		}
	}
}

type inPool struct{ db *sql.DB }

func (q inPool) scan(t *testing.T, text string) (value string) {
	t.Helper()
	if err := q.db.QueryRowContext(t.Context(), text).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

type inWriter struct{ s *Store }

func (q inWriter) scan(t *testing.T, text string) (value string) {
	t.Helper()
	if err := q.s.writer.write(t.Context(), func(ctx context.Context) error {
		return q.s.writer.conn.QueryRowContext(ctx, text).Scan(&value)
	}); err != nil {
		t.Fatal(err)
	}
	return value
}
