package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// Restored says what [Restore] has done.
type Restored struct {
	Report          // of what was restored
	From     int64  // the version of the schema of the backup
	Replaced string // path of a copy of the database that was replaced; empty: there was none

	// Keys that are valid, with nothing but their ID, owner and name.
	Added   []store.Key // created since the backup
	Unknown []store.Key // perhaps revoked since the backup: the database did not have them
}

// Restore replaces the content of the database in the file at path by the content of a backup, as
// [Backup] makes it, in one transaction. What is replaced is kept in another file. The backup
// is not changed.
//
// Keys and the audit log stay as they are in the database that is replaced, so that no key
// becomes valid again; those that only the backup has are added. IDs of pets that were
// created since the backup are not given to other pets. Everything else is as it was in the
// backup. The audit log gets an entry for the restore.
//
// A database whose keys cannot be read is refused. Without a file at path, it is not known
// which keys were revoked since the backup.
//
// A database that another process has open is refused, too. The error wraps [fs.ErrNotExist] if
// there is no backup. After an error the database has what it had before.
func Restore(ctx context.Context, backup, path string, by store.Actor, at time.Time) (r Restored, err error) {
	from, err := existingFile(backup)
	if err := errors.Join(err, by.Validate()); err != nil {
		return r, err
	}
	old, err := newFile(path)
	if err != nil {
		return r, err
	}
	old = old.at(realPath(old.path))
	if err := old.checkReplaceable(from); err != nil {
		return r, err
	}

	// What is restored is prepared in a file of its own.
	next, version, whole, err := from.copyUpgraded(ctx, old.path+".restore-"+timestamp(at))
	if err != nil {
		return r, err
	}
	defer func() { _ = os.Remove(next.path) }() // fails if it has got another name
	r = Restored{Report: whole, From: version}
	target, exists, err := old.lock(ctx, r.Schema)
	if err != nil {
		return Restored{}, err
	}
	defer target.Close()
	if exists {
		r.Replaced = old.path + ".replaced-" + timestamp(at)
	}
	entry := store.AuditEntry{
		At: at, Actor: by.Name, From: by.From, Action: store.DatabaseRestore, Target: printable(from.path),
		Detail: store.Detail("replaced", r.Replaced),
	}
	if err := entry.Validate(); err != nil {
		return Restored{}, err
	}
	if err := old.merge(ctx, target, next, entry, &r); err != nil {
		return Restored{}, err
	}
	if exists {
		err = old.replaceContent(ctx, target, next, r.Replaced)
	} else {
		err = rename(next.path, old.path)
	}
	if err != nil {
		return Restored{}, err
	}
	return r, nil
}

// checkReplaceable returns an error if the file cannot be replaced by a backup, or cannot
// get this name.
func (f file) checkReplaceable(backup file) error {
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

// inUse is the error for a database that another process has open.
func inUse(database string) error {
	return fmt.Errorf("database %s is in use by another process, such as a server; stop it first", database)
}

// lock opens the file, moves its log into it, and keeps other processes out until the
// connection is closed. It fails if another process has the file open. If there is no file, it
// returns an empty database with a version of the schema.
func (f file) lock(ctx context.Context, version int64) (_ *sql.DB, exists bool, err error) {
	switch err := f.checkRegular(); {
	case errors.Is(err, fs.ErrNotExist):
		db, err := inMemory(ctx, version)
		return db, false, err
	case err != nil:
		return nil, false, err
	}
	db, err := f.connect(1, "locking_mode(EXCLUSIVE)", "temp_store(MEMORY)")
	if err != nil {
		return nil, false, err
	}
	defer func() {
		if err != nil {
			db.Close()
		}
		switch {
		case isBusy(err):
			err = inUse(f.name)
		case isDamaged(err):
			err = f.unreadable(err)
		}
	}()
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, false, f.explain("open", err)
	}
	defer conn.Close()
	if _, err := f.version(ctx, conn); err != nil { // it may be newer
		return nil, false, err
	}
	// In the exclusive locking mode, the lock of a transaction stays.
	for _, text := range []string{"PRAGMA journal_mode = DELETE", "BEGIN EXCLUSIVE", "COMMIT"} {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			return nil, false, f.explain("restore", err)
		}
	}
	return db, true, nil
}

// unreadable is the error for a database whose keys cannot be read.
func (f file) unreadable(err error) error {
	return fmt.Errorf("database %s cannot be read, so keys that were revoked since the backup would be valid again; "+
		"if a version before this one made it, upgrade it with petstore migrate, and restore again; otherwise "+
		"move it and its log (-wal) away, restore again, and revoke the keys that the command then names: %w", f.name, err)
}

// copyUpgraded copies the file to a new one beside to, upgrades the copy to the newest schema and
// verifies it. It returns the copy, and the version of the schema of the file.
func (f file) copyUpgraded(ctx context.Context, to string) (next file, version int64, r Report, err error) {
	from, err := f.connectReadOnly()
	if err != nil {
		return next, 0, r, err
	}
	defer from.Close()
	if next, version, err = f.copyDatabase(ctx, from, to); err != nil {
		return next, 0, r, err
	}
	db, err := next.connect(1)
	if err == nil {
		_, err = next.upgrade(ctx, db, version)
		err = errors.Join(err, db.Close())
	}
	if err == nil {
		r, err = next.verifyCopy(ctx)
	}
	if err != nil {
		_ = os.Remove(next.path)
	}
	return next, version, r, err
}

// printable returns a path for an audit entry, with escapes instead of control characters.
func printable(path string) string { return strings.Trim(strconv.Quote(path), `"`) }

// The statements of a restore run on the database that is replaced (main), with the one that
// replaces it attached (restored).
const (
	// onlyText lists the valid keys of one of the two (first) that the other lacks.
	onlyText = `SELECT id, owner, name FROM %[1]s.keys
		WHERE coalesce(revoked > ?1, true) AND coalesce(expires > ?1, true) AND id NOT IN (SELECT id FROM %[2]s.keys)
		ORDER BY created, id`

	// By name: another version may have more columns.
	columnsText = `SELECT group_concat(name) FROM pragma_table_info(?, 'restored')`
	keepText    = `INSERT OR REPLACE INTO restored.%[1]s (%[2]s) SELECT %[2]s FROM main.%[1]s`

	// IDs of pets that were created since the backup are not given again.
	beginIDsText = `INSERT INTO restored.sqlite_sequence (name, seq)
		SELECT name, 0 FROM main.sqlite_sequence WHERE name NOT IN (SELECT name FROM restored.sqlite_sequence)`
	keepIDsText = `UPDATE restored.sqlite_sequence AS r SET seq = max(r.seq, m.seq)
		FROM main.sqlite_sequence AS m WHERE m.name = r.name`
)

// merge copies into next, which replaces the file, what must not be lost: keys with their
// revocations, the audit log, and the last IDs. It sets what r says about keys.
func (f file) merge(ctx context.Context, db *sql.DB, next file, entry store.AuditEntry, r *Restored) error {
	if _, err := db.ExecContext(ctx, "ATTACH ? AS restored", next.path); err != nil {
		return f.explain("restore", err)
	}
	defer func() { _, _ = db.ExecContext(context.WithoutCancel(ctx), "DETACH restored") }()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return f.explain("restore", err)
	}
	defer tx.Rollback() // does nothing after the commit
	err = mergeInto(ctx, tx, entry, r)
	if err == nil {
		err = tx.Commit()
	}
	switch {
	case isDamaged(err) || primary(code(err)) == sqlite3.SQLITE_ERROR: // a table is missing
		return f.unreadable(err)
	case err != nil:
		return f.explain("restore", err)
	}
	return nil
}

func mergeInto(ctx context.Context, tx *sql.Tx, e store.AuditEntry, r *Restored) (err error) {
	if r.Added, err = onlyIn(ctx, tx, "main", "restored", e.At); err != nil {
		return err
	}
	if r.Unknown, err = onlyIn(ctx, tx, "restored", "main", e.At); err != nil {
		return err
	}
	for _, table := range []string{"keys", "audit"} {
		var columns string
		if err := tx.QueryRowContext(ctx, columnsText, table).Scan(&columns); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, fmt.Sprintf(keepText, table, columns)); err != nil {
			return err
		}
	}
	for _, text := range []string{beginIDsText, keepIDsText} {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO restored.audit (at, actor, source, action, target, detail) VALUES (?, ?, ?, ?, ?, ?)",
		e.At.UnixMicro(), e.Actor, e.From, e.Action, e.Target, e.Detail)
	if err != nil {
		return err
	}
	return tx.QueryRowContext(ctx, "SELECT count(*) FROM restored.keys").Scan(&r.Keys)
}

// onlyIn returns the keys of one database that are valid and that the other lacks.
func onlyIn(ctx context.Context, tx *sql.Tx, one, other string, at time.Time) (keys []store.Key, err error) {
	rows, err := tx.QueryContext(ctx, fmt.Sprintf(onlyText, one, other), at.UnixMicro())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var k store.Key
		if err := rows.Scan(&k.ID, &k.Owner, &k.Name); err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, rows.Err()
}

// replaceContent copies the content of the file to another one, and replaces it by the
// content of next, in one transaction. The file stays the same one: another process that is waiting for it,
// such as a server that starts now, must not be left with a file that has lost its name.
func (f file) replaceContent(ctx context.Context, db *sql.DB, next file, keep string) error {
	if err := f.snapshot(ctx, db, func(conn *sql.Conn) error { return f.copyTo(ctx, conn, keep) }); err != nil {
		return err
	}
	conn, err := db.Conn(ctx)
	if err == nil {
		defer conn.Close()
		err = f.copyPages(ctx, conn, func(c pageCopier) (*sqlite.Backup, error) { return c.NewRestore(next.dsn("ro")) })
	}
	if err != nil {
		_ = os.Remove(keep) // nothing was replaced
		return f.explain("restore", err)
	}
	return nil
}
