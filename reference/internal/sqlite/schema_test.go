package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// Version is the version of the schema of this program.
const Version = 8

// AddMigrations makes this program a later one, which has more migrations, until the test
// ends.
func AddMigrations(t *testing.T, texts ...string) {
	t.Helper()
	own := migrations
	content, err := fs.ReadFile(own, "00008_petstore.sql")
	must(t, err)
	files := fstest.MapFS{"00008_petstore.sql": {Data: content}}
	for i, text := range texts {
		files[fmt.Sprintf("%05d_later.sql", Version+1+i)] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + text + ";\n")}
	}
	migrations = files
	t.Cleanup(func() { migrations = own })
}

func TestConnectionsAreSafe(t *testing.T) {
	s := openTest(t)
	const full = "2" // of PRAGMA synchronous
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
	} {
		if got := tt.query.scan(t, "PRAGMA "+tt.pragma); got != tt.want {
			t.Errorf("%s: PRAGMA %s is %s, want %s", tt.connection, tt.pragma, got, tt.want)
		}
	}
}

type inPool struct{ db *sql.DB }

func (q inPool) scan(t *testing.T, text string) (value string) {
	t.Helper()
	must(t, q.db.QueryRowContext(t.Context(), text).Scan(&value))
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

// Databases exist that each of these migrations has made, and a check compares them with
// what the migrations make now, comments included. So a migration never changes: a change
// of the schema is another migration, which is added here.
func TestMigrationsNeverChange(t *testing.T) {
	got := map[string]string{}
	folder := os.DirFS("migrations")
	if err := fs.WalkDir(folder, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(folder, path)
		sum := sha256.Sum256(content)
		got[path] = hex.EncodeToString(sum[:8])
		return err
	}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"main/00008_petstore.sql": "067dea749ce000a9",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("migrations (-want +got):\n%s", diff)
	}
}
