package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// Export calls do with everything in the database in the file at path, which is a backup or
// the file of a stopped server. Other processes are kept out until do returns. The file
// is not changed; only a log that a killed process has left is moved into it, as by every
// program that opens it.
//
// A file that is damaged or of an older version, or that another process has open, is
// refused. The error wraps [fs.ErrNotExist] if there is no file. An error of do is returned as
// it is.
func Export(ctx context.Context, path string, do func(store.Export) error) error {
	f, err := existingFile(path)
	if err != nil {
		return err
	}
	db, err := f.connectAlone()
	if err != nil {
		return err
	}
	defer db.Close()
	latest, err := latestVersion()
	if err != nil {
		return err
	}
	err = f.snapshot(ctx, db, func(conn *sql.Conn) error {
		r, err := f.verify(ctx, conn)
		if err != nil {
			return err
		}
		if r.Schema < latest {
			return fmt.Errorf("database %s has schema %d, this version needs %d; run petstore migrate for it first", f.name, r.Schema, latest)
		}
		x, err := f.export(ctx, conn)
		if err != nil {
			return err
		}
		return do(x)
	})
	if isBusy(err) {
		return inUse(f.name)
	}
	return err
}

// connectAlone returns a connection that keeps other processes out once it has read, or that
// only reads a file that this user may not write to.
func (f file) connectAlone() (*sql.DB, error) {
	if f.checkAccess() != nil {
		return f.connectReadOnly()
	}
	return f.connect(1, "locking_mode(EXCLUSIVE)")
}

func (f file) export(ctx context.Context, conn *sql.Conn) (store.Export, error) {
	x := store.Export{From: printable(f.path)}
	for _, t := range exported {
		table, err := exportTable(ctx, conn, t.name, t.columns)
		if err != nil {
			return x, f.explain("read", err)
		}
		x.Tables = append(x.Tables, table)
	}
	return x, nil
}

// exported are the tables of an export and their columns, which have the same names in
// PostgreSQL. Other tables refer to pets.
var exported = []struct{ name, columns string }{
	{"pets", "id, name, category_id, status"},
	{"idempotency_keys", "owner, key, fingerprint, pet, at"},
	{"keys", "id, digest, last_four, name, owner, plan, quotas, limits, created, expires, revoked, last_used"},
	{"audit", "id, at, actor, source, action, target, detail"},
	{"daily_use", "owner, day, allowed, denied"},
	{"deprecated_use", "operation, owner, count, last"},
	{"deprecated_use_by_day", "day, operation, owner, count"},
}

// conversions convert values that SQLite stores as numbers or texts, by column.
var conversions = map[string]func(any) (any, error){
	"at": exportInstant, "created": exportInstant, "expires": exportInstant, "revoked": exportInstant, "last": exportInstant, "last_used": exportInstant,
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

// lastIDText also asks the table itself, as SQLite does for the next ID.
const lastIDText = `SELECT coalesce(max(id), 0) FROM (SELECT id FROM %[1]s UNION ALL SELECT seq FROM sqlite_sequence WHERE name = '%[1]s')`

// exportTable returns a table of a file that does not change. Its rows keep the only connection
// while they are iterated.
func exportTable(ctx context.Context, on *sql.Conn, name, columns string) (t store.Table, err error) {
	t = store.Table{Name: name, Columns: strings.Split(columns, ", ")}
	if name == "pets" || name == "audit" {
		if err := on.QueryRowContext(ctx, fmt.Sprintf(lastIDText, name)).Scan(&t.LastID); err != nil {
			return t, err
		}
	}
	t.Rows = func(yield func([]any, error) bool) {
		rows, err := on.QueryContext(ctx, "SELECT "+columns+" FROM "+name)
		if err != nil {
			yield(nil, err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			row, err := exportRow(rows, name, t.Columns)
			if !yield(row, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, err)
		}
	}
	return t, nil
}

// exportRow returns the values of a row of a table.
func exportRow(rows *sql.Rows, table string, columns []string) (values []any, err error) {
	values, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range into {
		into[i] = &values[i]
	}
	if err := rows.Scan(into...); err != nil {
		return nil, err
	}
	for i, column := range columns {
		if convert := conversions[column]; convert != nil {
			if values[i], err = convert(values[i]); err != nil {
				return nil, fmt.Errorf("table %s, column %s: %w", table, column, err)
			}
		}
	}
	return values, nil
}
