package sqlite

import (
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // registers the driver
)

// connect returns a pool of at most n connections. Each runs the common pragmas and then
// the given ones.
func (f file) connect(n int, pragmas ...string) (*sql.DB, error) {
	return f.pool(n, f.dsn(url.Values{"mode": {"rw"}}, append([]string{
		"foreign_keys(1)",
		// On macOS, fsync alone leaves data in the cache of the drive.
		"fullfsync(1)",
		"checkpoint_fullfsync(1)",
	}, pragmas...)...))
}

// connectReadOnly returns one connection that changes nothing on the disk. Without a log
// or a journal beside it, the file must not change while it is open.
func (f file) connectReadOnly() (*sql.DB, error) {
	return f.pool(1, f.readOnlyDSN())
}

func (f file) readOnlyDSN() string {
	mode := url.Values{"mode": {"ro"}}
	for _, suffix := range []string{"-wal", "-journal"} {
		if _, err := os.Stat(realPath(f.path) + suffix); err == nil {
			return f.dsn(mode) // part of the content is there
		}
	}
	// Otherwise a file in WAL mode could not be opened in a read-only directory.
	mode.Set("immutable", "1")
	return f.dsn(mode)
}

func (f file) pool(n int, dsn string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", f.name, err)
	}
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db, nil
}

// dsn returns the name of the file for the driver, with parameters and the pragmas that
// each connection runs.
func (f file) dsn(parameters url.Values, pragmas ...string) string {
	for name, values := range map[string][]string{
		"_pragma":    append([]string{"busy_timeout(" + f.busyTimeout() + ")", "trusted_schema(0)"}, pragmas...),
		"_txlock":    {"immediate"},
		"_dqs":       {"0"}, // "name" is a name, never a string
		"_defensive": {"1"},
		"_error_rc":  {"1"}, // no error text of another call
	} {
		parameters[name] = values
	}
	path := filepath.ToSlash(f.path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive letter
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: parameters.Encode()}).String()
}
