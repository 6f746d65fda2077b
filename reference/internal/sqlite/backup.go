package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Backup copies the database in the file at path, which servers may have open, to a new
// file, as of one instant. The file has its name once it is complete, checked and synced
// to the disk, and only its owner can read it. The report is about the copy; if it has
// problems, the database has them too.
//
// Limiter state is not copied, because a server that counts usage locks it.
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
	switch version, err := f.inspect(ctx, db, mainSchema); {
	case err != nil:
		return Report{}, err
	case version == 0:
		return Report{}, fmt.Errorf("database %s is empty; there is nothing to back up", f.name)
	}
	if to, err = filepath.Abs(to); err != nil {
		return Report{}, err
	}
	err = f.copyTo(ctx, db, to, func(partial file) (err error) {
		if r, err = partial.checkCopy(ctx); err == nil && r.Damaged {
			err = fmt.Errorf("database %s is damaged: %s", f.name, r.Problems[0])
		}
		return err
	})
	return r, err
}

// checkCopy examines a file that nothing else uses.
func (f file) checkCopy(ctx context.Context) (Report, error) {
	db, err := f.connectReadOnly()
	if err != nil {
		return Report{}, err
	}
	r, err := f.check(ctx, db, mainSchema)
	return r, errors.Join(err, db.Close())
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
	partial := file{name: temp.Name(), path: temp.Name(), busy: f.busy}
	defer func() {
		if err != nil {
			discard(partial.path, partial.path+"-journal")
		}
	}()
	if err := temp.Close(); err != nil {
		return withoutPath(err)
	}
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", partial.path); err != nil {
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
