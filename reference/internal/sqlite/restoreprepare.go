package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

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
