package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
)

// replaced is a file that another one replaces.
type replaced struct {
	file
	exists   bool
	db       *sql.DB // one connection, which locks the file; nil: SQLite cannot read it
	hasKeys  bool    // it has tables of this program
	hasAudit bool
}

// lockReplaced locks the file, if it exists, so that no other process can open it.
func lockReplaced(ctx context.Context, f file) (_ *replaced, err error) {
	t := &replaced{file: f}
	switch err := f.checkRegular(); {
	case errors.Is(err, fs.ErrNotExist):
		return t, nil
	case err != nil:
		return nil, err
	}
	t.exists = true
	if err := f.checkAccess(); err != nil {
		return nil, err
	}
	version, err := f.versionOf(ctx)
	switch {
	case isBusy(err):
		return nil, inUse(f.name)
	case err != nil && (!IsDamaged(err) || f.isText()): // it belongs to another program
		return nil, err
	}
	t.hasKeys, t.hasAudit = version >= 2, version >= 4
	if t.db, err = f.connect(1, "locking_mode(EXCLUSIVE)", "synchronous(FULL)", "temp_store(MEMORY)"); err != nil {
		return nil, err
	}
	err = t.lock(ctx)
	if err != nil {
		t.close()
	}
	switch {
	case isBusy(err):
		return nil, inUse(f.name)
	case err != nil && !IsDamaged(err):
		return nil, f.explain("restore", err)
	}
	return t, nil
}

// versionOf returns the version of the schema of the file, and changes nothing. The file may
// be of a newer version or have another schema: it is replaced.
func (f file) versionOf(ctx context.Context) (int64, error) {
	db, err := f.connect(1, "query_only(1)")
	if err != nil {
		return 0, err
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return 0, f.explain("open", err)
	}
	defer conn.Close()
	return f.version(ctx, conn, mainSchema)
}

// isText reports whether the file is text, and so was never a database. No connection to it
// may be open: closing it here would release its locks.
func (f file) isText() bool {
	in, err := os.Open(f.path)
	if err != nil {
		return false
	}
	defer in.Close()
	begin := make([]byte, 512)
	n, _ := io.ReadFull(in, begin)
	return n > 0 && strings.HasPrefix(http.DetectContentType(begin[:n]), "text/")
}

// lock moves the log into the file, which takes that no other process has it open, and
// keeps others out until the connection is closed.
func (t *replaced) lock(ctx context.Context) error {
	var mode string
	if err := t.db.QueryRowContext(ctx, "PRAGMA journal_mode = DELETE").Scan(&mode); err != nil {
		return err
	}
	// In the exclusive locking mode, the lock of a write stays.
	tx, err := t.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "PRAGMA user_version = 1"); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "PRAGMA user_version = 0"); err != nil {
		return err
	}
	return tx.Commit()
}

func (t *replaced) close() {
	if t.db != nil {
		t.db.Close()
		t.db = nil
	}
}

// replace replaces the file by next and keeps it at a path.
func (t *replaced) replace(ctx context.Context, next file, keep string) error {
	if t.db != nil {
		err := t.replaceContent(ctx, next, keep)
		if !IsDamaged(err) {
			return err
		}
		t.close()
	}
	return t.replaceName(next, keep)
}

// replaceContent writes the content of next to the file, in one transaction. The file
// stays the same one: another process that is waiting for it, such as a server that
// starts now, must not be left with a file that has lost its name.
func (t *replaced) replaceContent(ctx context.Context, next file, keep string) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(keep), filepath.Base(keep)+".*.partial")
	if err != nil {
		return fmt.Errorf("cannot write in the directory %s: %w", filepath.Dir(keep), withoutPath(err))
	}
	kept := file{name: keep, path: temp.Name(), busy: t.busy}
	defer discard(kept.path) // does nothing once it has its name
	if err := temp.Close(); err != nil {
		return err
	}
	conn, err := t.db.Conn(ctx)
	if err != nil {
		return t.explain("restore", err)
	}
	defer conn.Close()
	if err := copyPages(conn, func(c pageCopier) (*sqlite.Backup, error) {
		return c.NewBackup(kept.dsn(map[string][]string{"mode": {"rw"}}))
	}); err != nil {
		return explain(fmt.Sprintf("restore: keep the database that is replaced as %s", keep), err)
	}
	if err := syncFile(kept.path); err != nil {
		return fmt.Errorf("sync %s: %w", keep, withoutPath(err))
	}
	if err := rename(kept.path, keep); err != nil {
		return err
	}
	if err := copyPages(conn, func(c pageCopier) (*sqlite.Backup, error) {
		return c.NewRestore(next.readOnlyDSN())
	}); err != nil {
		discard(keep) // nothing was replaced
		return t.explain("restore", err)
	}
	return nil
}

// A pageCopier is a connection of the driver.
type pageCopier interface {
	NewBackup(to string) (*sqlite.Backup, error)
	NewRestore(from string) (*sqlite.Backup, error)
}

// copyPages copies all pages, whatever is in them, or none.
func copyPages(conn *sql.Conn, begin func(pageCopier) (*sqlite.Backup, error)) error {
	return conn.Raw(func(c any) error {
		b, err := begin(c.(pageCopier))
		if err != nil {
			return err
		}
		_, err = b.Step(-1)
		return errors.Join(err, b.Finish())
	})
}

// replaceName gives the name of the file, which SQLite cannot read or which does not
// exist, to next. The old file keeps another name. A file that exists has its name all the
// time, so that a server which starts meanwhile does not create an empty database.
func (t *replaced) replaceName(next file, keep string) error {
	linked := false
	if info, err := os.Stat(t.path); err == nil {
		// A server that runs as another user must be able to open it.
		if err := giveTo(next.path, info); err != nil {
			return fmt.Errorf("give the restored file to the owner of %s: %w", t.name, withoutPath(err))
		}
		linked = os.Link(t.path, keep) == nil // not in a file system without hard links
	}
	suffixes, setName := []string{"", "-wal", "-journal"}, rename
	if linked {
		suffixes, setName = suffixes[1:], os.Rename
	}
	// SQLite would apply a log that is left to the new file.
	var moved []string
	undo := func() error {
		err := t.moveBack(keep, moved)
		if linked {
			discard(keep)
		}
		return err
	}
	for _, suffix := range suffixes {
		err := os.Rename(t.path+suffix, keep+suffix)
		switch {
		case err == nil:
			moved = append(moved, suffix)
		case !errors.Is(err, fs.ErrNotExist):
			return errors.Join(fmt.Errorf("rename %s: %w", t.path+suffix, withoutPath(err)), undo())
		}
	}
	discard(t.path + "-shm")
	if err := setName(next.path, t.path); err != nil {
		return errors.Join(err, undo())
	}
	syncDir(filepath.Dir(t.path))
	return nil
}

// moveBack undoes renames. If it cannot, its error says where the files are.
func (t *replaced) moveBack(keep string, suffixes []string) error {
	var errs []error
	for _, suffix := range suffixes {
		if err := os.Rename(keep+suffix, t.path+suffix); err != nil {
			errs = append(errs, fmt.Errorf("the database is now %s: %w", keep+suffix, err))
		}
	}
	return errors.Join(errs...)
}
