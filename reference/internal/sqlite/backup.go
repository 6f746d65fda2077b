package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
)

// A Report says what is in a file that has passed the checks.
type Report struct {
	Schema     int64 // its version
	Pets, Keys int64 // how many there are
}

// Backup copies the database in the file at path, which servers may have open, to a new
// file, as of one instant. The file has its name once it is complete, checked and synced
// to the disk, and only its owner can read it.
//
// The error wraps [fs.ErrNotExist] if there is no database, and [fs.ErrExist] if there
// is a file at to.
func Backup(ctx context.Context, path, to string) (r Report, err error) {
	f, err := existingFile(path)
	if err == nil {
		err = f.checkAccess()
	}
	if err != nil {
		return Report{}, err
	}
	db, err := f.connect(1)
	if err != nil {
		return Report{}, err
	}
	defer db.Close()
	if to, err = filepath.Abs(to); err != nil {
		return Report{}, err
	}
	partial, _, err := f.copyDatabase(ctx, db, to)
	if err != nil {
		return Report{}, err
	}
	if r, err = partial.verifyCopy(ctx); err != nil {
		_ = os.Remove(partial.path)
		return Report{}, err
	}
	return r, rename(partial.path, to)
}

// copyDatabase is copyPartial for a database of petstore. It also returns the version of its
// schema.
func (f file) copyDatabase(ctx context.Context, db *sql.DB, to string) (partial file, version int64, err error) {
	err = f.snapshot(ctx, db, func(conn *sql.Conn) (err error) {
		if version, err = f.inspectFilled(ctx, conn); err != nil {
			return err
		}
		partial, err = f.copyPartial(ctx, conn, to)
		return err
	})
	return partial, version, err
}

// inspectFilled is inspect for a file that must have a schema.
func (f file) inspectFilled(ctx context.Context, conn *sql.Conn) (version int64, err error) {
	version, err = f.inspect(ctx, conn)
	if err == nil && version == 0 {
		err = fmt.Errorf("database %s is empty", f.name)
	}
	return version, err
}

// verifyCopy is verify for a copy that nothing else uses.
func (f file) verifyCopy(ctx context.Context) (r Report, err error) {
	db, err := f.connect(1, "query_only(1)")
	if err != nil {
		return r, err
	}
	defer db.Close()
	err = f.snapshot(ctx, db, func(conn *sql.Conn) error {
		r, err = f.verify(ctx, conn)
		return err
	})
	return r, err
}

// verify returns an error unless SQLite finds the file whole, each row refers to rows that
// exist, and this program knows the version of the schema.
func (f file) verify(ctx context.Context, conn *sql.Conn) (r Report, err error) {
	if r.Schema, err = f.inspectFilled(ctx, conn); err != nil {
		return r, err
	}
	for _, text := range []string{integrityText, referencesText} {
		problem := "ok"
		if err := conn.QueryRowContext(ctx, text).Scan(&problem); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return r, f.explain("check", err)
		}
		if problem != "ok" {
			return r, fmt.Errorf("database %s is damaged: %s", f.name, strings.Join(strings.Fields(problem), " "))
		}
	}
	err = conn.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM pets), (SELECT count(*) FROM keys)`).Scan(&r.Pets, &r.Keys)
	if err != nil {
		return r, f.explain("check", err)
	}
	return r, nil
}

// These list what is wrong with a file. SQLite reports problems outside of tables in one row of
// several lines.
const (
	integrityText  = `PRAGMA integrity_check(20)`
	referencesText = `SELECT 'a row of ' || "table" || ' refers to a row of ' || "parent" || ' that does not exist'
		FROM pragma_foreign_key_check LIMIT 1`
)

// copyTo writes a copy of the database, as of one instant, to a new file. The copy has its name
// once it is complete.
func (f file) copyTo(ctx context.Context, conn *sql.Conn, to string) error {
	partial, err := f.copyPartial(ctx, conn, to)
	if err != nil {
		return err
	}
	return rename(partial.path, to)
}

// copyPartial writes a copy of the database, as of one instant, to a new file beside to, which
// the caller can then rename to it. Only its owner can read the file. Other processes may read
// and write the database meanwhile. SQLite syncs the copy to the disk. The error wraps
// [fs.ErrExist] if there is a file at to.
func (f file) copyPartial(ctx context.Context, conn *sql.Conn, to string) (partial file, err error) {
	if _, err := os.Lstat(to); err == nil {
		return partial, fmt.Errorf("%s: %w", to, fs.ErrExist)
	}
	temp, err := os.CreateTemp(filepath.Dir(to), filepath.Base(to)+".*.partial")
	if err != nil {
		return partial, fmt.Errorf("cannot write in the directory %s: %w", filepath.Dir(to), withoutPath(err))
	}
	partial = f.at(temp.Name())
	err = temp.Close()
	if err == nil {
		err = f.copyPages(ctx, conn, func(c pageCopier) (*sqlite.Backup, error) {
			// A copy that is not complete is deleted, so it needs no journal.
			return c.NewBackup(partial.dsn("rw", "journal_mode(OFF)"))
		})
	}
	if err == nil {
		err = partial.leaveWAL(ctx)
	}
	if err != nil {
		_ = os.Remove(partial.path)
		return partial, explain("copy database "+f.name+" to "+to, err)
	}
	return partial, nil
}

// A pageCopier is a connection of the driver.
type pageCopier interface {
	NewBackup(to string) (*sqlite.Backup, error)
	NewRestore(from string) (*sqlite.Backup, error)
}

// copyPages copies all pages from or to the database of a connection.
func (f file) copyPages(ctx context.Context, conn *sql.Conn, begin func(pageCopier) (*sqlite.Backup, error)) error {
	return conn.Raw(func(c any) error {
		b, err := begin(c.(pageCopier))
		if err != nil {
			return err
		}
		const pages = 1000
		for more := true; more && err == nil; {
			if err = ctx.Err(); err == nil {
				more, err = b.Step(pages)
			}
		}
		return errors.Join(err, b.Finish())
	})
}

// leaveWAL makes a copy a single file, even while it is read.
func (f file) leaveWAL(ctx context.Context) error {
	db, err := f.connect(1)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "PRAGMA journal_mode = DELETE")
	return errors.Join(err, db.Close())
}

// rename gives a file a new name, or deletes it if that fails. If there is a file of that name, the
// error wraps [fs.ErrExist]; only a file system without hard links replaces that file.
func rename(from, to string) error {
	err := os.Link(from, to)
	switch {
	case errors.Is(err, fs.ErrExist):
		err = fmt.Errorf("%s: %w", to, fs.ErrExist)
	case err != nil: // a file system without hard links
		if err = os.Rename(from, to); err != nil {
			err = fmt.Errorf("rename to %s: %w", to, withoutPath(err))
		}
	}
	_ = os.Remove(from)
	syncDir(filepath.Dir(to))
	return err
}

// syncDir makes a new name in a directory durable, where the system can do that.
func syncDir(path string) {
	if d, err := os.Open(path); err == nil {
		_ = errors.Join(d.Sync(), d.Close()) // Windows cannot
	}
}
