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
