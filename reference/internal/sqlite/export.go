package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// Export calls do with everything in the database in the file at path: a backup, or the
// file of a server that has stopped. It works on a copy with the newest schema, which is
// deleted when do returns, in the directory for temporary files. The file is not changed;
// only a log that a killed process has left is moved into it, as by every program that
// opens it.
//
// A file that is damaged, or that another process has open, is refused. The error wraps
// [fs.ErrNotExist] if there is no file, or is that of do.
func Export(ctx context.Context, path string, o Options, do func(store.Export) error) (err error) {
	f, err := o.existingFile(path)
	if err != nil {
		return err
	}
	if err := f.checkUnused(ctx); err != nil {
		return err
	}
	// Only this user can read the directory.
	dir, err := os.MkdirTemp("", "petstore-import-*")
	if err != nil { // which must not be taken for one about the file
		return fmt.Errorf("copy database %s first: %v; set TMPDIR to another directory", f.name, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	next, _, _, err := f.copyUpgraded(ctx, filepath.Join(dir, "copy"))
	if err != nil {
		return err
	}
	db, err := next.connect(1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	x := store.Export{From: printable(f.path)}
	var done, total int64 // rows
	for _, t := range exported {
		table, rows, err := exportTable(ctx, db, t.name, t.columns, func() {
			if done++; done%1000 == 0 {
				f.progress("importing", done, total)
			}
		})
		total += rows
		if err != nil {
			return f.explain("read", err)
		}
		x.Tables = append(x.Tables, table)
	}
	return do(x)
}

// checkUnused returns an error if another process has the file open, such as a server, which may
// write more. A file that this user may not write to is not examined.
func (f file) checkUnused(ctx context.Context) error {
	if f.checkAccess() != nil {
		return nil
	}
	db, err := f.connect(1, "locking_mode(EXCLUSIVE)")
	if err != nil {
		return err
	}
	defer db.Close()
	var one int
	if err := db.QueryRowContext(ctx, "SELECT 1 FROM sqlite_schema").Scan(&one); isBusy(err) {
		return inUse(f.name)
	}
	return ctx.Err() // whatever else is wrong with the file is found later
}

// exported are the tables of an export and their columns, which have the same names in
// PostgreSQL. Other tables refer to pets.
var exported = []struct{ name, columns string }{
	{"pets", "id, name, category_id, status"},
	{"idempotency_keys", "owner, key, fingerprint, pet, at"},
	{"keys", "id, digest, last_four, name, owner, plan, quotas, limits, created, expires, revoked"},
	{"audit", "id, at, actor, source, action, target, detail"},
	{"daily_use", "owner, day, allowed, denied"},
	{"deprecated_use", "operation, owner, count, last"},
	{"deprecated_use_by_day", "day, operation, owner, count"},
}

// conversions are of values that SQLite stores as numbers or texts, by column.
var conversions = map[string]func(any) (any, error){
	"at": exportInstant, "created": exportInstant, "expires": exportInstant, "revoked": exportInstant, "last": exportInstant,
	"day":    func(v any) (any, error) { return store.DayOf(v.(int64)), nil },
	"quotas": exportTexts, "limits": exportTexts,
}

func exportInstant(v any) (any, error) {
	if v == nil {
		return nil, nil
	}
	return time.UnixMicro(v.(int64)).UTC(), nil
}

func exportTexts(v any) (any, error) {
	texts := []string{}
	err := json.Unmarshal([]byte(v.(string)), &texts)
	return texts, err
}

// lastIDText asks the table, too, as SQLite does for the next ID.
const lastIDText = `SELECT coalesce(max(id), 0) FROM (SELECT id FROM %[1]s UNION ALL SELECT seq FROM sqlite_sequence WHERE name = '%[1]s')`

// exportTable returns a table of a file that does not change, and the number of its rows.
// These keep the only connection while they are iterated; read is called after each.
func exportTable(ctx context.Context, on *sql.DB, name, columns string, read func()) (t store.Table, rows int64, err error) {
	t = store.Table{Name: name, Columns: strings.Split(columns, ", ")}
	if err := on.QueryRowContext(ctx, "SELECT count(*) FROM "+name).Scan(&rows); err != nil {
		return t, 0, err
	}
	if name == "pets" || name == "audit" {
		if err := on.QueryRowContext(ctx, fmt.Sprintf(lastIDText, name)).Scan(&t.LastID); err != nil {
			return t, 0, err
		}
	}
	t.Rows = eachRow(ctx, on, func(row scanner) ([]any, error) {
		values, into := make([]any, len(t.Columns)), make([]any, len(t.Columns))
		for i := range into {
			into[i] = &values[i]
		}
		if err := row.Scan(into...); err != nil {
			return nil, err
		}
		for i, column := range t.Columns {
			if convert := conversions[column]; convert != nil {
				if values[i], err = convert(values[i]); err != nil {
					return nil, fmt.Errorf("table %s, column %s: %w", name, column, err)
				}
			}
		}
		read()
		return values, nil
	}, "SELECT "+columns+" FROM "+name)
	return t, rows, nil
}
