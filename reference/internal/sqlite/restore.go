package sqlite

import (
	"context"
	"database/sql"
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

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// Restored says what [Restore] has done.
type Restored struct {
	Report          // of what was restored
	From     int64  // the version of the schema of the backup
	Replaced string // path of the file that was replaced; empty: there was none

	Ended   []RestoredKey // valid in the backup, and revoked or shortened since then
	Unknown []RestoredKey // valid now, and perhaps revoked since the backup
	Gone    []RestoredKey // valid before, and not in the backup
}

// A RestoredKey names a key.
type RestoredKey struct{ ID, Owner, Name string }

// Restore replaces the content of the database in the file at path by that of a backup, as
// [Backup] makes it, in one transaction. The content that is replaced is kept in another
// file. The backup is not changed.
//
// No key is valid for longer than it was in the database that is replaced: keys that were
// revoked, rotated or shortened since the backup stay so. The IDs of pets that were
// created since the backup are not given to other pets. The audit log keeps its entries
// and gets one for the restore. Limiter state is not changed. Everything else is as it
// was in the backup.
//
// A database whose keys cannot be read is refused. Without a file at path, it is not known
// which keys were revoked since the backup.
//
// The error wraps [ErrInUse] if another process has the file open, and [fs.ErrNotExist]
// if there is no backup. After an error the database has what it had before.
func Restore(ctx context.Context, backup, path string, by store.Actor, at time.Time, o Options) (r Restored, err error) {
	from, err := o.existingFile(backup)
	if err := errors.Join(err, by.Validate()); err != nil {
		return r, err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return r, fmt.Errorf("database %s: %w", path, err)
	}
	old := file{name: path, path: realPath(abs), busy: from.busy}
	if err := old.checkReplaceable(ctx, from); err != nil {
		return r, err
	}

	// What is restored is prepared in a file of its own.
	next := file{name: path, path: old.path + ".restore-" + timestamp(at), busy: from.busy}
	defer discard(next.path)
	if r.Report, err = from.prepareRestore(ctx, next); err != nil {
		return Restored{}, err
	}
	r.From = r.Schema
	target, err := old.lock(ctx)
	if err != nil {
		return Restored{}, err
	}
	keep := old.path + ".replaced-" + timestamp(at)
	if target != nil {
		defer target.Close()
		r.Replaced = keep
		if err := old.merge(ctx, target, next, at, &r); err != nil {
			return Restored{}, err
		}
	}
	if err := next.finishRestore(ctx, from.path, by, at, &r); err != nil {
		return Restored{}, err
	}
	if target == nil {
		err = rename(next.path, old.path)
	} else {
		err = old.replaceContent(ctx, target, next, keep)
	}
	if err != nil {
		return Restored{}, err
	}
	return r, nil
}

// checkReplaceable returns an error if the file cannot be replaced by a backup, or cannot
// get this name: its directory does not exist, it is a symbolic link to a file that does
// not exist, such as one on a disk that is not mounted, or a log is there without it.
func (f file) checkReplaceable(ctx context.Context, backup file) error {
	if _, err := os.Stat(filepath.Dir(f.path)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("database %s: the directory %s does not exist", f.name, filepath.Dir(f.path))
	}
	if to, err := os.Readlink(f.path); err == nil { // realPath follows all others
		return fmt.Errorf("database %s: it is a symbolic link to %s, which does not exist; remove the link, or mount the disk of that file", f.name, to)
	}
	if err := f.checkUsageUnused(ctx); err != nil {
		return err
	}
	info, err := os.Stat(f.path)
	if err == nil {
		if other, err := os.Stat(backup.path); err == nil && os.SameFile(info, other) {
			return fmt.Errorf("%s is the database itself; name a backup of it", backup.name)
		}
		return errors.Join(f.checkRegular(), f.checkAccess())
	}
	for _, suffix := range []string{"-wal", "-journal"} { // SQLite would apply it to the restored file
		if _, err := os.Stat(f.path + suffix); err == nil {
			return fmt.Errorf("database %s does not exist, but its log %s does; move the log to where the database is now", f.name, f.path+suffix)
		}
	}
	return nil
}

// checkUsageUnused returns [ErrInUse] if a server has the limiter state of the database
// open, which says that it runs even if the database file is damaged or gone.
func (f file) checkUsageUnused(ctx context.Context) error {
	usage, err := Options{BusyTimeout: f.busy}.existingFile(UsagePath(f.path))
	if err != nil {
		return nil // there is none
	}
	return usage.read(ctx, f.name)
}

func inUse(database string) error {
	return fmt.Errorf("database %s is %w, such as a server; stop it first", database, ErrInUse)
}

// prepareRestore checks the file, which is a backup, and copies it to next, with the
// newest schema. It returns the report about the backup.
func (f file) prepareRestore(ctx context.Context, next file) (r Report, err error) {
	r, err = f.checkCopy(ctx)
	switch {
	case err != nil:
		return r, err
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

// lock opens the file, moves its log into it, which takes that no other process has it
// open, and keeps others out until the connection is closed. It returns nil if there is no
// file.
func (f file) lock(ctx context.Context) (_ *sql.DB, err error) {
	switch err := f.checkRegular(); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	db, err := f.connect(1, "locking_mode(EXCLUSIVE)", "synchronous(FULL)", "temp_store(MEMORY)")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			db.Close()
		}
		switch {
		case isBusy(err):
			err = inUse(f.name)
		case IsDamaged(err):
			err = f.unreadable(err)
		}
	}()
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, f.explain("open", err)
	}
	defer conn.Close()
	if _, err := f.version(ctx, conn, mainSchema); err != nil { // it may be newer
		return nil, err
	}
	// In the exclusive locking mode, the lock of a write stays.
	for _, pragma := range []string{"journal_mode = DELETE", "user_version = 1", "user_version = 0"} {
		if _, err := conn.ExecContext(ctx, "PRAGMA "+pragma); err != nil {
			return nil, f.explain("restore", err)
		}
	}
	return db, nil
}

// unreadable is the error for a database whose keys cannot be read.
func (f file) unreadable(err error) error {
	return fmt.Errorf("database %s cannot be read, so keys that were revoked since the backup would be valid again; "+
		"if a version before this one made it, upgrade it with petstore migrate, and restore again; otherwise "+
		"move it and its log (-wal) away, restore again, and revoke the keys that the command then names: %w", f.name, err)
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
	if r.Replaced == "" {
		if r.Unknown, err = allRows(ctx, db, scanRestoredKey, validKeysText, at.UnixMicro()); err != nil {
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

// The statements of a restore run on the file that is replaced (main), with the one that
// replaces it attached (restored).
const (
	never = `9223372036854775807`

	// endText is the instant from which a row of a table keys is not valid.
	endText = `min(coalesce(k.revoked, ` + never + `), coalesce(k.expires, ` + never + `))`

	// The audit log has the end of a key that an earlier restore has removed. That of a
	// rotated key is the last word of the detail, in whole seconds.
	endsText      = `CREATE TEMP TABLE ends AS SELECT id, revoked, expires FROM main.keys`
	auditEndsText = `INSERT INTO temp.ends (id, revoked)
		SELECT target, min(at) FROM main.audit WHERE action = 'key.revoke' GROUP BY target`
	auditRotatedText = `INSERT INTO temp.ends (id, expires)
		SELECT target, min(unixepoch(substr(detail, -21, 20))) * 1000000 AS ends FROM main.audit
		WHERE action = 'key.rotate' AND detail LIKE '% old_expires="____________________"'
			AND target NOT IN (SELECT id FROM main.keys)
		GROUP BY target HAVING ends IS NOT NULL`

	endedText = `SELECT k.id, k.owner, k.name FROM restored.keys AS k JOIN
		(SELECT id, min(` + endText + `) AS ends FROM temp.ends AS k GROUP BY id) AS e USING (id)
		WHERE ` + endText + ` > ? AND e.ends < ` + endText + ` ORDER BY k.created, k.id`
	unknownText = `SELECT k.id, k.owner, k.name FROM restored.keys AS k
		WHERE ` + endText + ` > ? AND id NOT IN (SELECT id FROM temp.ends) ORDER BY k.created, k.id`
	goneText = `SELECT k.id, k.owner, k.name FROM main.keys AS k
		WHERE ` + endText + ` > ? AND id NOT IN (SELECT id FROM restored.keys) ORDER BY k.created, k.id`

	revokeText = `UPDATE restored.keys AS k SET revoked = e.revoked
		FROM (SELECT id, min(revoked) AS revoked FROM temp.ends GROUP BY id) AS e
		WHERE e.id = k.id AND e.revoked < coalesce(k.revoked, ` + never + `)`
	expireText = `UPDATE restored.keys AS k SET expires = e.expires
		FROM (SELECT id, min(expires) AS expires FROM temp.ends GROUP BY id) AS e
		WHERE e.id = k.id AND e.expires < coalesce(k.expires, ` + never + `)`

	mergeAuditText = `INSERT INTO restored.audit (at, actor, source, action, target, detail)
		SELECT at, actor, source, action, target, detail FROM main.audit AS m
		WHERE NOT EXISTS (SELECT 1 FROM restored.audit AS r WHERE r.at = m.at AND r.actor = m.actor AND r.source = m.source
			AND r.action = m.action AND r.target = m.target AND r.detail = m.detail)
		ORDER BY m.id`

	// IDs of pets that were created since the backup are not given again.
	beginPetsText = `INSERT INTO restored.sqlite_sequence (name, seq)
		SELECT 'pets', 0 WHERE NOT EXISTS (SELECT 1 FROM restored.sqlite_sequence WHERE name = 'pets')`
	petIDsText = `UPDATE restored.sqlite_sequence
		SET seq = max(seq, coalesce((SELECT max(seq) FROM main.sqlite_sequence WHERE name = 'pets'), 0)) WHERE name = 'pets'`

	// For a restore without a file that is replaced.
	validKeysText = `SELECT k.id, k.owner, k.name FROM keys AS k
		WHERE ` + endText + ` > ? ORDER BY k.created, k.id`
)

// merge takes over into next, which replaces the file, what must not be lost: ends of
// keys, audit entries, the IDs of pets. It sets the lists of r.
func (f file) merge(ctx context.Context, db *sql.DB, next file, at time.Time, r *Restored) error {
	if _, err := db.ExecContext(ctx, "ATTACH ? AS restored", next.path); err != nil {
		return f.explain("restore", err)
	}
	defer func() { _, _ = db.ExecContext(context.WithoutCancel(ctx), "DETACH restored") }()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return f.explain("restore", err)
	}
	defer tx.Rollback() // does nothing after the commit
	err = f.mergeInto(ctx, tx, at, r)
	if err == nil {
		err = tx.Commit()
	}
	switch {
	case IsDamaged(err) || primary(code(err)) == sqlite3.SQLITE_ERROR: // a table is missing
		return f.unreadable(err)
	case err != nil:
		return f.explain("restore", err)
	}
	return nil
}

func (f file) mergeInto(ctx context.Context, tx *sql.Tx, at time.Time, r *Restored) (err error) {
	if err := execAll(ctx, tx, endsText, auditEndsText, auditRotatedText); err != nil {
		return err
	}
	for _, list := range []struct {
		keys *[]RestoredKey
		text string
	}{{&r.Ended, endedText}, {&r.Unknown, unknownText}, {&r.Gone, goneText}} {
		if *list.keys, err = allRows(ctx, tx, scanRestoredKey, list.text, at.UnixMicro()); err != nil {
			return err
		}
	}
	return execAll(ctx, tx, revokeText, expireText, beginPetsText, petIDsText, mergeAuditText, "DROP TABLE temp.ends")
}

func execAll(ctx context.Context, tx *sql.Tx, texts ...string) error {
	for _, text := range texts {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

func scanRestoredKey(row scanner) (k RestoredKey, err error) {
	err = row.Scan(&k.ID, &k.Owner, &k.Name)
	return k, err
}

// replaceContent keeps the content of the file in another one, and writes that of next to it,
// in one transaction. The file
// stays the same one: another process that is waiting for it, such as a server that
// starts now, must not be left with a file that has lost its name.
func (f file) replaceContent(ctx context.Context, db *sql.DB, next file, keep string) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(keep), filepath.Base(keep)+".*.partial")
	if err != nil {
		return fmt.Errorf("cannot write in the directory %s: %w", filepath.Dir(keep), withoutPath(err))
	}
	kept := file{name: keep, path: temp.Name(), busy: f.busy}
	defer discard(kept.path) // does nothing once it has its name
	if err := temp.Close(); err != nil {
		return err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return f.explain("restore", err)
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
		return f.explain("restore", err)
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
