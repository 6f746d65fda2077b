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
	"sync"
	"time"
)

// A Report says what is in a file that was found whole.
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
func Backup(ctx context.Context, path, to string, o Options) (r Report, err error) {
	f, err := o.existingFile(path)
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
	switch version, err := f.inspect(ctx, db); {
	case err != nil:
		return Report{}, err
	case version == 0:
		return Report{}, fmt.Errorf("database %s is empty; there is nothing to back up", f.name)
	}
	if to, err = filepath.Abs(to); err != nil {
		return Report{}, err
	}
	err = f.copyTo(ctx, db, to, func(partial file) (err error) {
		r, err = partial.verifyOwn(ctx)
		return err
	})
	return r, err
}

// verifyOwn is verify for a file that this process has made. Only if it may be written to,
// SQLite examines the constraints too.
func (f file) verifyOwn(ctx context.Context) (Report, error) {
	return f.verify(ctx, func() (*sql.DB, error) { return f.connect(1, "query_only(1)") })
}

// verify examines a file that nothing else uses. It returns an error unless SQLite finds the
// file whole, each row refers to rows that exist, and the schema is that of this program.
func (f file) verify(ctx context.Context, connect func() (*sql.DB, error)) (r Report, err error) {
	db, err := connect()
	if err != nil {
		return r, err
	}
	defer db.Close()
	if r.Schema, err = f.inspect(ctx, db); err != nil {
		return r, err
	}
	if r.Schema == 0 {
		return r, fmt.Errorf("database %s is empty", f.name)
	}
	f.progress("checking", 0, 0)
	for _, text := range []string{integrityText, referencesText} {
		problems, err := allRows(ctx, db, scanText, text)
		if err != nil {
			return r, f.explain("check", err)
		}
		if len(problems) > 0 && problems[0] != "ok" {
			return r, fmt.Errorf("database %s is damaged: %s", f.name, strings.Join(strings.Fields(problems[0]), " "))
		}
	}
	err = db.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM pets), (SELECT count(*) FROM keys)`).Scan(&r.Pets, &r.Keys)
	if err != nil {
		return r, f.explain("check", err)
	}
	return r, nil
}

// What is wrong with a file. Of what is not in a table, SQLite reports all in one row.
const (
	integrityText  = `PRAGMA integrity_check(20)`
	referencesText = `SELECT 'a row of ' || "table" || ' refers to a row of ' || "parent" || ' that does not exist'
		FROM pragma_foreign_key_check LIMIT 1`
)

func scanText(row scanner) (text string, err error) {
	err = row.Scan(&text)
	return text, err
}

// copyTo writes a copy of the database, as of one instant, to a new file that only its
// owner can read. Other processes may read and write the database meanwhile. The copy
// has its name once it is complete and synced to the disk, and check, if it is not nil,
// has found it good. The error wraps [fs.ErrExist] if there is a file of that name.
func (f file) copyTo(ctx context.Context, db *sql.DB, to string, check func(partial file) error) (err error) {
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("%s: %w", to, fs.ErrExist)
	}
	temp, err := os.CreateTemp(filepath.Dir(to), filepath.Base(to)+".*.partial")
	if err != nil {
		return fmt.Errorf("cannot write in the directory %s: %w", filepath.Dir(to), withoutPath(err))
	}
	partial := f.at(temp.Name())
	defer func() {
		if err != nil {
			discard(partial.path, partial.path+"-journal")
		}
	}()
	if err := temp.Close(); err != nil {
		return withoutPath(err)
	}
	stop := f.reportCopy(ctx, db, partial.path)
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", partial.path)
	stop()
	if err != nil {
		return explain("copy database "+f.name+" to "+to, err)
	}
	if check != nil {
		if err := check(partial); err != nil {
			return err
		}
	}
	if err := syncFile(partial.path); err != nil {
		return fmt.Errorf("sync %s: %w", to, withoutPath(err))
	}
	return rename(partial.path, to)
}

// reportCopy reports how much of a copy of the database is there, until the returned function
// is called.
func (f file) reportCopy(ctx context.Context, db *sql.DB, to string) (stop func()) {
	const sizeText = `SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size`
	var size int64
	_ = db.QueryRowContext(ctx, sizeText).Scan(&size) // 0: it is not known
	ticker, done := time.NewTicker(100*time.Millisecond), make(chan struct{})
	var reporting sync.WaitGroup
	reporting.Go(func() {
		for {
			select {
			case <-ticker.C:
				if info, err := os.Stat(to); err == nil {
					f.progress("copying", min(info.Size(), size), size)
				}
			case <-done:
				ticker.Stop()
				return
			}
		}
	})
	return func() {
		close(done)
		reporting.Wait()
	}
}

// rename gives a file a new name. It does not replace a file of that name: its error then
// wraps [fs.ErrExist].
func rename(from, to string) error {
	switch err := os.Link(from, to); {
	case err == nil:
		discard(from)
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s: %w", to, fs.ErrExist)
	default: // a file system without hard links
		if err := os.Rename(from, to); err != nil {
			return fmt.Errorf("rename to %s: %w", to, withoutPath(err))
		}
	}
	syncDir(filepath.Dir(to))
	return nil
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// syncDir makes a new name in a directory durable, where the system can do that.
func syncDir(path string) {
	if d, err := os.Open(path); err == nil {
		_ = errors.Join(d.Sync(), d.Close()) // Windows cannot
	}
}

// discard deletes files that nothing uses. One that cannot be deleted does no harm.
func discard(paths ...string) {
	for _, path := range paths {
		_ = os.Remove(path)
	}
}
