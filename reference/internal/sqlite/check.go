package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// A Report is what [Check] has found in a file.
type Report struct {
	File           string
	Schema, Latest int64            // the version of the schema, and the one that this program knows
	Rows           map[string]int64 // by table
	Damaged        bool             // SQLite finds the file damaged, or its schema is not that of this program
	Problems       []string         // empty: the file is sound
}

// maxProblems is how many problems of one kind a report has.
const maxProblems = 20

// Check examines the database in the file at path, which servers may have open: whether
// SQLite can read all of it, whether its tables are those of this program, whether rows
// refer to others that exist, and whether the store could have written each row. Rows of an
// older schema are not examined one by one.
//
// The error is about a file that cannot be examined at all: it does not exist (then it
// wraps [fs.ErrNotExist]), cannot be read, is not a SQLite database, or belongs to another
// program or a newer version.
func Check(ctx context.Context, path string, o Options) (Report, error) {
	f, db, err := openToCheck(path, o)
	if err != nil {
		return Report{}, err
	}
	defer db.Close()
	return f.check(ctx, db, mainSchema)
}

// CheckUsage examines the limiter state in the file at path as [Check] does. If it is sound
// and of the latest schema, load is called with it, and must only load. If a server has the
// file open, the error wraps [ErrInUse].
func CheckUsage(ctx context.Context, path string, o Options, load func(store.Usage) error) (r Report, err error) {
	f, db, err := openToCheck(path, o)
	if err != nil {
		return Report{}, err
	}
	defer db.Close()
	r, err = f.check(ctx, db, usageSchema)
	if err == nil && len(r.Problems) == 0 && r.Schema == r.Latest {
		err = load(&Usage{file: f, db: db})
	}
	if isBusy(err) {
		err = fmt.Errorf("%w: %w", ErrInUse, err)
	}
	return r, err
}

// openToCheck opens one connection that changes nothing in the file.
func openToCheck(path string, o Options) (file, *sql.DB, error) {
	if err := o.validate(); err != nil {
		return file{}, nil, err
	}
	f, err := existingFile(path, o.withDefaults().BusyTimeout)
	if err != nil {
		return file{}, nil, err
	}
	if f.checkAccess() != nil { // such as a backup that nobody may change
		db, err := f.connectReadOnly()
		return f, db, err
	}
	db, err := f.connect(1, "query_only(1)")
	return f, db, err
}

// check examines a file as of one instant.
func (f file) check(ctx context.Context, db *sql.DB, s schema) (r Report, err error) {
	r = Report{File: f.name, Rows: map[string]int64{}}
	conn, err := db.Conn(ctx)
	if err != nil {
		return r, r.damage(f.explain("open", err))
	}
	defer conn.Close()
	if _, r.Latest, err = s.provider(db); err != nil {
		return r, err
	}
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return r, r.damage(f.explain("open", err))
	}
	defer conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	if r.Schema, err = f.version(ctx, conn, s); err != nil {
		return r, r.damage(err)
	}
	if r.Schema > r.Latest {
		return r, f.newer(s, r.Schema, r.Latest)
	}
	schema := func(ctx context.Context, conn *sql.Conn) error {
		differences, err := s.differences(ctx, conn, r.Schema)
		r.Problems = append(r.Problems, differences...)
		r.Damaged = r.Damaged || len(differences) > 0
		return err
	}
	for _, step := range []func(context.Context, *sql.Conn) error{r.integrity, schema, r.references, r.count} {
		if err := step(ctx, conn); err != nil {
			return r, r.damage(f.explain("check", err))
		}
	}
	if s == mainSchema && r.Schema == r.Latest && !r.Damaged {
		if err := r.rows(ctx, conn); err != nil {
			return r, r.damage(f.explain("check", err))
		}
	}
	return r, nil
}

// damage adds an error to the report if it says that the file is a damaged database, and
// otherwise returns it.
func (r *Report) damage(err error) error {
	if !IsDamaged(err) || primary(code(err)) == sqlite3.SQLITE_NOTADB {
		return err
	}
	r.Damaged = true
	r.Problems = append(r.Problems, err.Error())
	return nil
}

// integrity has SQLite read the whole file: its structure, its indexes, and the
// constraints of the tables.
func (r *Report) integrity(ctx context.Context, conn *sql.Conn) error {
	rows, err := conn.QueryContext(ctx, fmt.Sprintf("PRAGMA integrity_check(%d)", maxProblems))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return err
		}
		if text == "ok" {
			continue
		}
		r.Damaged = true
		for line := range strings.Lines(text) { // of what is not in a table, all in one row
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "***") {
				r.Problems = append(r.Problems, line)
			}
		}
	}
	return rows.Err()
}

// references looks for rows that refer to others that do not exist.
func (r *Report) references(ctx context.Context, conn *sql.Conn) error {
	rows, err := conn.QueryContext(ctx, `SELECT "table", "parent", count(*) FROM pragma_foreign_key_check GROUP BY 1, 2`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var table, parent string
		var n int64
		if err := rows.Scan(&table, &parent, &n); err != nil {
			return err
		}
		r.Problems = append(r.Problems, fmt.Sprintf("table %s: %d rows refer to rows of %s that do not exist", table, n, parent))
	}
	return rows.Err()
}

// count counts the rows of each table.
func (r *Report) count(ctx context.Context, conn *sql.Conn) error {
	tables, err := tableNames(ctx, conn)
	if err != nil {
		return err
	}
	for _, table := range tables {
		var n int64
		if err := conn.QueryRowContext(ctx, `SELECT count(*) FROM "`+table+`"`).Scan(&n); err != nil {
			return err
		}
		r.Rows[table] = n
	}
	return nil
}

// tableNames returns the names of the tables of this program.
func tableNames(ctx context.Context, conn *sql.Conn) (names []string, err error) {
	rows, err := conn.QueryContext(ctx, `SELECT name FROM sqlite_schema WHERE type = 'table'
		AND name <> 'goose_db_version' AND name NOT LIKE 'sqlite#_%' ESCAPE '#'`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

// errSchema is in the error for a file that has other tables, indexes, triggers or views than
// the migrations make.
var errSchema = errors.New("its schema is not the one that petstore makes")

// differences compares the schema of a file, which has a version, with what the migrations
// make. A trigger can change what a statement does, a table or an index can make it fail or be
// in the way of an upgrade, so nothing else may be there.
func (s schema) differences(ctx context.Context, conn *sql.Conn, version int64) (problems []string, err error) {
	want, err := s.objects(ctx, version)
	if err != nil {
		return nil, err
	}
	got, err := schemaObjects(ctx, conn)
	if err != nil {
		return nil, err
	}
	for _, o := range slices.Sorted(maps.Keys(want)) {
		switch text, exists := got[o]; {
		case !exists:
			problems = append(problems, fmt.Sprintf("%s is missing", o))
		case text != want[o]:
			problems = append(problems, fmt.Sprintf("%s is not as this program makes it", o))
		}
		delete(got, o)
	}
	for _, o := range slices.Sorted(maps.Keys(got)) {
		problems = append(problems, fmt.Sprintf("%s does not belong to this program", o))
	}
	return problems, nil
}

// objects returns what a version of the schema consists of.
func (s schema) objects(ctx context.Context, version int64) (map[string]string, error) {
	if version == 0 {
		return nil, nil
	}
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection would have a database of its own
	provider, _, err := s.provider(db)
	if err != nil {
		return nil, err
	}
	if _, err := provider.UpTo(ctx, version); err != nil {
		return nil, fmt.Errorf("make the schema in memory: %w", err)
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return schemaObjects(ctx, conn)
}

// schemaObjects returns the text of each table, index, trigger and view by its type and
// name.
func schemaObjects(ctx context.Context, conn *sql.Conn) (map[string]string, error) {
	rows, err := conn.QueryContext(ctx, `SELECT type || ' ' || name, sql FROM sqlite_schema
		WHERE type IN ('trigger', 'view') OR name <> 'goose_db_version' AND name NOT LIKE 'sqlite#_%' ESCAPE '#'`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	objects := map[string]string{}
	for rows.Next() {
		var name string
		var text sql.NullString
		if err := rows.Scan(&name, &text); err != nil {
			return nil, err
		}
		objects[name] = strings.Join(strings.Fields(text.String), " ")
	}
	return objects, rows.Err()
}
