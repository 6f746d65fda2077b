package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// Restored says what [Restore] has done.
type Restored struct {
	Report          // of what was restored
	From     int64  // the version of the schema of the backup
	Replaced string // path of the file that was replaced; empty: there was none

	// Known says whether the keys of the file that was replaced could be read.
	Known bool

	Ended   []RestoredKey // valid in the backup, and revoked or shortened since then
	Unknown []RestoredKey // valid now, and perhaps revoked since the backup
	Gone    []RestoredKey // valid before, and not in the backup
}

// A RestoredKey names a key.
type RestoredKey struct {
	ID, Owner, Name string
	Ends            time.Time // when it was revoked or expires, whichever is sooner; zero: never
}

// Restore replaces the database in the file at path with a backup, as [Backup] makes
// it. The file that is replaced is kept under another name. The backup is not changed.
//
// No key is valid for longer than it was in the file that is replaced: keys that were
// revoked, rotated or shortened since the backup stay so. The IDs of pets that were
// created since the backup are not given to other pets. The audit log keeps its entries
// and gets one for the restore. Limiter state is not changed. Everything else is as it
// was in the backup.
//
// The error wraps [ErrInUse] if another process has the file open, and [fs.ErrNotExist]
// if there is no backup. After an error the file is as it was before.
func Restore(ctx context.Context, backup, path string, by store.Actor, at time.Time, o Options) (r Restored, err error) {
	if err := errors.Join(o.validate(), by.Validate()); err != nil {
		return r, err
	}
	o = o.withDefaults()
	from, err := existingFile(backup, o.BusyTimeout)
	if err != nil {
		return r, err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return r, fmt.Errorf("database %s: %w", path, err)
	}
	old := file{name: path, path: realPath(abs), busy: o.BusyTimeout}
	if err := old.checkPlace(); err != nil {
		return r, err
	}
	if sameFile(from.path, old.path) {
		return r, fmt.Errorf("%s is the database itself; name a backup of it", backup)
	}
	if err := checkUsageUnused(ctx, path, o); err != nil {
		return r, err
	}
	if err := old.checkAccess(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}

	// What is restored is prepared in a file of its own.
	next := file{name: path, path: old.path + ".restore-" + timestamp(at), busy: o.BusyTimeout}
	defer discard(next.path)
	if r.Report, err = from.prepareRestore(ctx, next); err != nil {
		return Restored{}, err
	}
	r.From = r.Schema
	target, err := lockReplaced(ctx, old)
	if err != nil {
		return Restored{}, err
	}
	defer target.close()
	if err := target.mergeInto(ctx, next, at, &r); err != nil {
		return Restored{}, err
	}
	keep := old.path + ".replaced-" + timestamp(at)
	if target.exists {
		r.Replaced = keep
	}
	if err := next.finishRestore(ctx, from.path, by, at, &r); err != nil {
		return Restored{}, err
	}
	if err := target.replace(ctx, next, keep); err != nil {
		return Restored{}, err
	}
	return r, nil
}

// checkPlace returns an error if a file cannot get this name: its directory does not exist,
// or it is a symbolic link to a file that does not exist, such as one on a disk that is not
// mounted.
func (f file) checkPlace() error {
	if _, err := os.Stat(filepath.Dir(f.path)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("database %s: the directory %s does not exist", f.name, filepath.Dir(f.path))
	}
	if to, err := os.Readlink(f.path); err == nil { // realPath follows all others
		return fmt.Errorf("database %s: it is a symbolic link to %s, which does not exist; remove the link, or mount the disk of that file", f.name, to)
	}
	return nil
}

func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}

// checkUsageUnused returns [ErrInUse] if a server has the limiter state of a database
// open, which says that it runs even if the database file is damaged or gone.
func checkUsageUnused(ctx context.Context, database string, o Options) error {
	usage, err := existingFile(UsagePath(database), o.BusyTimeout)
	if err != nil {
		return nil // there is none
	}
	db, err := usage.connect(1)
	if err != nil {
		return err
	}
	defer db.Close()
	var one int
	if err := db.QueryRowContext(ctx, "SELECT 1 FROM sqlite_schema").Scan(&one); isBusy(err) {
		return inUse(database)
	}
	return ctx.Err() // whatever else is wrong with that file, it is not restored
}

func inUse(database string) error {
	return fmt.Errorf("database %s is %w, such as a server; stop it first", database, ErrInUse)
}

// prepareRestore checks the file, which is a backup, and copies it to next, with the
// newest schema. It returns the report about the backup.
func (f file) prepareRestore(ctx context.Context, next file) (r Report, err error) {
	r, err = f.checkCopy(ctx)
	if err != nil {
		return r, err
	}
	switch {
	case r.Damaged:
		return r, fmt.Errorf("backup %s is damaged: %s", f.name, r.Problems[0])
	case r.Schema == 0:
		return r, fmt.Errorf("backup %s is empty", f.name)
	}
	if err := f.copyUpgraded(ctx, next, r.Schema); err != nil {
		return r, fmt.Errorf("prepare the restore: %w", err)
	}
	return r, nil
}

// copyUpgraded copies the file, which has a version of the schema, to next, with the newest
// schema.
func (f file) copyUpgraded(ctx context.Context, next file, version int64) error {
	from, err := f.connectReadOnly()
	if err != nil {
		return err
	}
	defer from.Close()
	if err := f.copyTo(ctx, from, next.path, nil); err != nil {
		return err
	}
	db, err := next.connect(1)
	if err != nil {
		return err
	}
	defer db.Close()
	provider, latest, err := mainSchema.provider(db)
	if err != nil {
		return err
	}
	return next.upgrade(ctx, db, mainSchema, provider, version, latest, Options{noCopy: true})
}

// finishRestore adds the audit entry to the file, which is about to replace another, and
// reports on it.
func (f file) finishRestore(ctx context.Context, backup string, by store.Actor, at time.Time, r *Restored) (err error) {
	db, err := f.connect(1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if !r.Known {
		if r.Unknown, err = restoredKeys(ctx, db, validKeysText, at); err != nil {
			return f.explain("restore", err)
		}
	}
	e := store.AuditEntry{
		At: at, Actor: by.Name, From: by.From, Action: store.DatabaseRestore, Target: printable(backup),
		Detail: store.Detail("replaced", r.Replaced, "keys_ended", strconv.Itoa(len(r.Ended)),
			"keys_unknown", strconv.Itoa(len(r.Unknown)), "keys_gone", strconv.Itoa(len(r.Gone))),
	}
	if err := e.Validate(); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, addAuditText, e.At.UnixMicro(), e.Actor, e.From, e.Action, e.Target, e.Detail); err != nil {
		return f.explain("restore", err)
	}
	if r.From == r.Latest {
		return nil // its rows were checked in the backup
	}
	r.Report, err = f.check(ctx, db, mainSchema)
	if err == nil && r.Damaged {
		err = fmt.Errorf("the backup cannot be restored: %s", r.Problems[0])
	}
	return err
}

// printable quotes a path that an audit entry cannot have.
func printable(path string) string {
	if strings.ContainsFunc(path, unicode.IsControl) || !utf8.ValidString(path) {
		return strconv.Quote(path)
	}
	return path
}
