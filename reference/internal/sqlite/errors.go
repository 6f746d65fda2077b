package sqlite

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// code returns SQLite's result code for err, zero if it has none.
func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return sqlite3.SQLITE_OK
}

// primary returns the primary result code of an extended one.
func primary(code int) int { return code & 0xff }

func isBusy(err error) bool {
	p := primary(code(err))
	return p == sqlite3.SQLITE_BUSY || p == sqlite3.SQLITE_LOCKED
}

// isDamaged reports whether err says that a file is damaged or not a database.
func isDamaged(err error) bool {
	p := primary(code(err))
	return p == sqlite3.SQLITE_NOTADB || p == sqlite3.SQLITE_CORRUPT
}

// explain returns an error that says what failed, why, and what an operator can do. If
// a retry can succeed, the error wraps [store.ErrUnavailable].
func explain(doing string, err error) error {
	switch code(err) {
	case sqlite3.SQLITE_IOERR_SHMSIZE: // no space for the index of the log
		return unavailable(doing, "the disk is full", err)
	case sqlite3.SQLITE_READONLY_ROLLBACK, sqlite3.SQLITE_READONLY_RECOVERY:
		return fmt.Errorf("%s: a process was killed while it wrote to the file; run petstore keys list for it once as a user who may write to it: %w", doing, err)
	}
	switch primary(code(err)) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return unavailable(doing, "another process locks the file for too long", err)
	case sqlite3.SQLITE_FULL:
		return unavailable(doing, "the disk is full", err)
	case sqlite3.SQLITE_IOERR:
		return unavailable(doing, "the disk cannot be read or written", err)
	case sqlite3.SQLITE_NOMEM:
		return unavailable(doing, "out of memory", err)
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return cannotWrite(doing, err)
	case sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%s: it is not a SQLite database: %w", doing, err)
	case sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("%s: it is damaged; restore it from a backup: %w", doing, err)
	default:
		return fmt.Errorf("%s: %w", doing, err)
	}
}

func cannotWrite(doing string, err error) error {
	return fmt.Errorf("%s: it cannot be opened or written; check the rights of this user on the file and its directory: %w", doing, err)
}

func unavailable(doing, why string, err error) error {
	return fmt.Errorf("%s: %w: %s: %w", doing, store.ErrUnavailable, why, err)
}

// explain is for operations on the whole file.
func (f file) explain(doing string, err error) error {
	return explain(doing+" database "+f.name, err)
}
