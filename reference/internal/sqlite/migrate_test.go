package sqlite

import (
	"context"
	"database/sql"
	"io/fs"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"
)

// content is what each version of the program could store for the first time.
var content = []string{
	`INSERT INTO pets (name, category_id, status) VALUES ('Rex', 1, 'sold')`,
	`INSERT INTO keys (id, digest, last_four, name, owner, plan, quotas, created, expires, revoked)
		VALUES ('key_1', x'` + strings.Repeat("07", 32) + `', 'abcd', 'laptop', 'ada', 'free', '[]', 1000000, NULL, 2000000)`,
	`INSERT INTO deprecated_use (operation, owner, count, last) VALUES ('getPet', 'ada', 7, 1000000)`,
	`INSERT INTO audit (at, actor, source, action, target, detail) VALUES (1000000, 'admin', '', 'ban.end', 'owner:ada', '')`,
	`INSERT INTO daily_use (day, owner, allowed, denied) VALUES (0, 'ada', 5, 6)`,
	`INSERT INTO idempotency_keys (owner, key, fingerprint, pet, at) VALUES ('ada', 'k', zeroblob(32), 1, 1000000)`,
	`UPDATE keys SET limits = '["5/minute"]'`,
	`UPDATE pets SET name = 'Rex'`,
}

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
		for _, text := range content[:version] {
			if _, err := db.Exec(text); err != nil {
				t.Fatal(err)
			}
		}
	} else if _, err := provider.GetDBVersion(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (s *Store) version(t *testing.T) int64 {
	t.Helper()
	version, err := s.inspectAlone(t.Context(), mainSchema)
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
		{"pets, reading", inPool{s.reads.on.(*sql.DB)}, "query_only", "1"},
		{"pets, reading", inPool{s.reads.on.(*sql.DB)}, "busy_timeout", "5000"},
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
	if err := q.s.write(t.Context(), "test", func(ctx context.Context) error {
		return q.s.writer.conn.QueryRowContext(ctx, text).Scan(&value)
	}); err != nil {
		t.Fatal(err)
	}
	return value
}
