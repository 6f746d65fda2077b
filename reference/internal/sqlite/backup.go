package sqlite

import (
	"context"
	"errors"
	"fmt"
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
	if err := o.validate(); err != nil {
		return Report{}, err
	}
	f, err := existingFile(path, o.withDefaults().BusyTimeout)
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
