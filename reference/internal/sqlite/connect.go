package sqlite

import (
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

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

// Options are optional settings of the functions of this package. The zero value works.
type Options struct {
	// BusyTimeout is how long a call waits for another process that locks the file,
	// in whole milliseconds. Zero: five seconds.
	BusyTimeout time.Duration

	// Readers is the number of connections for reading. Zero: eight.
	Readers int

	// MaxBatch is the largest number of writes in one transaction. Zero: 256.
	// One: writes share no transaction.
	MaxBatch int

	// OnUpgrade is called before a file of an older version is upgraded, when the copy
	// of it is complete.
	OnUpgrade func(Upgrade)

	// NoMigrate refuses a file that is missing or of an older version, and changes
	// nothing. [Migrate] creates and upgrades it then. OpenUsage ignores it.
	NoMigrate bool

	noCopy bool // the file is a copy already
}

func (o Options) validate() error {
	switch {
	case o.BusyTimeout < 0 || o.BusyTimeout%time.Millisecond != 0:
		return fmt.Errorf("sqlite: Options.BusyTimeout must be whole milliseconds from 0, got %v", o.BusyTimeout)
	case o.Readers < 0:
		return fmt.Errorf("sqlite: Options.Readers must not be negative, got %d", o.Readers)
	case o.MaxBatch < 0:
		return fmt.Errorf("sqlite: Options.MaxBatch must not be negative, got %d", o.MaxBatch)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.BusyTimeout == 0 {
		o.BusyTimeout = 5 * time.Second
	}
	if o.Readers == 0 {
		o.Readers = 8
	}
	if o.MaxBatch == 0 {
		o.MaxBatch = 256
	}
	return o
}
