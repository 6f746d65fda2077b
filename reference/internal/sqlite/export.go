package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// Export calls do with everything in the database in the file at path: a backup, or the
// file of a server that has stopped. It works on a copy with the newest schema, which is
// deleted when do returns, in the directory for temporary files. The file is not changed;
// only a log that a killed process has left is moved into it, as by every program that
// opens it.
//
// A file that is damaged, or has a row that the store could not have written, is refused.
// The error wraps [ErrInUse] if another process has the file open, [fs.ErrNotExist] if
// there is none, or is that of do.
func Export(ctx context.Context, path string, o Options, do func(store.Export) error) (err error) {
	f, err := o.existingFile(path)
	if err != nil {
		return err
	}
	if err := f.checkUnused(ctx); err != nil {
		return err
	}
	r, err := f.checkExport(ctx, f.name)
	if err != nil {
		return err
	}
	// Only this user can read the directory.
	dir, err := makeTemp("petstore-import-*")
	if err != nil { // which must not be taken for one about the file
		return fmt.Errorf("copy database %s first: %v; set TMPDIR to a directory with room for it", f.name, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	next := file{name: f.name, path: filepath.Join(dir, "copy.db"), busy: f.busy}
	if err := f.copyUpgraded(ctx, next, r.Schema); err != nil {
		return fmt.Errorf("copy database %s first: %w; if there is no room, set TMPDIR to a directory with room for it", f.name, err)
	}
	if r.Schema < r.Latest { // until now its rows were not examined one by one
		if _, err := next.checkExport(ctx, f.name); err != nil {
			return err
		}
	}
	db, err := next.connectReadOnly()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	x := newExport(ctx, db)
	x.From = printable(f.path)
	if err := db.QueryRowContext(ctx, lastIDsText).Scan(&x.LastPet, &x.LastAudit); err != nil {
		return f.explain("read", err)
	}
	return do(x)
}

// makeTemp makes a directory among the temporary files, and returns its absolute path.
func makeTemp(pattern string) (string, error) {
	in, err := filepath.Abs(os.TempDir())
	if err != nil {
		return "", err
	}
	return os.MkdirTemp(in, pattern)
}

// checkUnused returns [ErrInUse] if another process has the file open, such as a server,
// which may write more. A file that this user may not write to is not examined.
func (f file) checkUnused(ctx context.Context) error {
	if f.checkAccess() != nil {
		return nil
	}
	return f.read(ctx, f.name, "locking_mode(EXCLUSIVE)")
}

// read returns [ErrInUse] for a database if another process keeps this one from reading the
// file. Whatever else is wrong with it is not an error.
func (f file) read(ctx context.Context, database string, pragmas ...string) error {
	db, err := f.connect(1, pragmas...)
	if err != nil {
		return err
	}
	defer db.Close()
	var one int
	if err := db.QueryRowContext(ctx, "SELECT 1 FROM sqlite_schema").Scan(&one); isBusy(err) {
		return inUse(database)
	}
	return ctx.Err()
}

// checkExport examines a file, and returns an error if its rows cannot be taken over.
func (f file) checkExport(ctx context.Context, name string) (Report, error) {
	r, err := f.checkCopy(ctx)
	switch {
	case err != nil:
		return r, err
	case r.Damaged:
		return r, fmt.Errorf("database %s is damaged: %s; import a backup of it", name, r.Problems[0])
	case r.Schema == 0:
		return r, fmt.Errorf("database %s is empty; there is nothing to import", name)
	case len(r.Problems) == 1:
		return r, fmt.Errorf("database %s has 1 problem: %s; correct it first, or import an older backup", name, r.Problems[0])
	case len(r.Problems) > 1:
		return r, fmt.Errorf("database %s has %d problems, such as: %s; petstore check shows them; correct them first, or import an older backup",
			name, len(r.Problems), r.Problems[0])
	}
	return r, nil
}

// lastIDsText asks the tables, too, as SQLite does for the next ID: the table of the last IDs
// is an ordinary one, which a program that repairs a file may leave incomplete.
const lastIDsText = `SELECT
	max(coalesce((SELECT max(seq) FROM sqlite_sequence WHERE name = 'pets'), 0), coalesce((SELECT max(id) FROM pets), 0)),
	max(coalesce((SELECT max(seq) FROM sqlite_sequence WHERE name = 'audit'), 0), coalesce((SELECT max(id) FROM audit), 0))`

// newExport returns the content of a file that does not change. Each of its sequences
// keeps the only connection while it is iterated.
func newExport(ctx context.Context, on querier) store.Export {
	return store.Export{
		Pets:          eachRow(ctx, on, scanPet, `SELECT `+petColumns+` FROM pets ORDER BY id`),
		Keys:          eachKey(ctx, on),
		Audit:         eachRow(ctx, on, scanAudit, `SELECT `+auditColumns+` FROM audit ORDER BY id`),
		DailyUse:      eachRow(ctx, on, scanDailyUse, `SELECT day, owner, allowed, denied FROM daily_use`),
		DeprecatedUse: eachRow(ctx, on, scanDeprecatedUse, `SELECT operation, owner, count, last, 0 FROM deprecated_use`),
		DeprecatedUseByDay: eachRow(ctx, on, func(row scanner) (u store.DeprecatedUse, err error) {
			var day int64
			err = row.Scan(&day, &u.Operation, &u.Owner, &u.Count)
			u.Last = dayOf(day)
			return u, err
		}, `SELECT day, operation, owner, count FROM deprecated_use_by_day`),
		IdempotentRequests: eachRow(ctx, on, scanIdempotentRequest, `SELECT owner, key, fingerprint, at, pet FROM idempotency_keys`),
	}
}

func scanPet(row scanner) (p store.Pet, err error) {
	err = row.Scan(&p.ID, &p.Name, &p.CategoryID, &p.Status)
	return p, err
}

func scanIdempotentRequest(row scanner) (r store.IdempotentRequest, err error) {
	var fingerprint []byte
	var at int64
	err = row.Scan(&r.Owner, &r.Key, &fingerprint, &at, &r.Pet)
	copy(r.Fingerprint[:], fingerprint) // the schema has a check of its length
	r.At = instant(at)
	return r, err
}
