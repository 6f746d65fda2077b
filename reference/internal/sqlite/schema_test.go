package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"
	"time"
)

// Version is the version of the schema of this program.
const Version = 9

// AddMigrations makes this program a later one, which has more migrations, until the test
// ends.
func AddMigrations(t *testing.T, texts ...string) {
	t.Helper()
	own := migrations
	files := fstest.MapFS{}
	names, err := fs.Glob(own, "*")
	must(t, err)
	for _, name := range names {
		content, err := fs.ReadFile(own, name)
		must(t, err)
		files[name] = &fstest.MapFile{Data: content}
	}
	for i, text := range texts {
		files[fmt.Sprintf("%05d_later.sql", Version+1+i)] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + text + ";\n")}
	}
	migrations = files
	t.Cleanup(func() { migrations = own })
}

// ShortenBusyTimeout has calls wait for 20 milliseconds until the test ends.
func ShortenBusyTimeout(t *testing.T) {
	before := busyTimeout
	busyTimeout = 20 * time.Millisecond
	t.Cleanup(func() { busyTimeout = before })
}

func TestConnectionsAreSafe(t *testing.T) {
	s := openTest(t)
	read := func(pragma string) (value string) {
		must(t, s.reads.row(t.Context(), "PRAGMA "+pragma, nil, &value))
		return value
	}
	write := func(pragma string) (value string) {
		must(t, s.write(t.Context(), "test", func(ctx context.Context) error {
			return s.writer.row(ctx, "PRAGMA "+pragma, nil, &value)
		}))
		return value
	}
	for _, tt := range []struct {
		ask          func(pragma string) string
		pragma, want string
	}{
		{write, "journal_mode", "wal"},
		{write, "synchronous", "2"}, // full
		{write, "fullfsync", "1"},
		{write, "foreign_keys", "1"},
		{write, "busy_timeout", "5000"},
		{read, "query_only", "1"},
		{read, "busy_timeout", "5000"},
	} {
		if got := tt.ask(tt.pragma); got != tt.want {
			t.Errorf("PRAGMA %s is %s, want %s", tt.pragma, got, tt.want)
		}
	}
}

// Databases exist that the migrations have made. So a migration never changes: a change of the schema is another one.
func TestMigrationsNeverChange(t *testing.T) {
	for name, want := range map[string]string{"00008_petstore.sql": "067dea749ce000a9", "00009_last_used.sql": "3dd44102ccaab21d"} {
		content, err := fs.ReadFile(migrations, name)
		must(t, err)
		sum := sha256.Sum256(content)
		if got := hex.EncodeToString(sum[:8]); got != want {
			t.Errorf("the checksum of %s is %s, want %s", name, got, want)
		}
	}
}

// While a restore has the lock, no other process can read or write, whatever the journal mode is.
func TestTheLockOfARestoreKeepsOthersOut(t *testing.T) {
	s := openTest(t)
	must(t, s.Close())
	for _, mode := range []string{"WAL", "DELETE"} {
		other, err := sql.Open("sqlite", s.path)
		must(t, err)
		_, err = other.ExecContext(t.Context(), "PRAGMA journal_mode = "+mode)
		must(t, errors.Join(err, other.Close()))
		locked, _, err := s.lock(t.Context(), Version)
		must(t, err)
		other, err = sql.Open("sqlite", s.path)
		must(t, err)
		var n int
		if err := other.QueryRow("SELECT count(*) FROM pets").Scan(&n); !isBusy(err) {
			t.Errorf("in the mode %s, another process reads %d pets (%v), want that it is busy", mode, n, err)
		}
		must(t, errors.Join(other.Close(), locked.Close()))
	}
}
