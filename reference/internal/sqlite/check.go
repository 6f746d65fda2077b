package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"iter"
	"strings"
	"time"

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
	f, err := o.existingFile(path)
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
func (f file) check(ctx context.Context, db *sql.DB, s *schema) (r Report, err error) {
	r = Report{File: f.name, Rows: map[string]int64{}}
	if _, r.Latest, err = s.provider(db); err != nil {
		return r, err
	}
	err = f.snapshot(ctx, db, func(conn *sql.Conn) error { return r.examine(ctx, f, conn, s) })
	if !IsDamaged(err) || primary(code(err)) == sqlite3.SQLITE_NOTADB {
		return r, err
	}
	r.Damaged = true
	r.Problems = append(r.Problems, err.Error())
	return r, nil
}

// examine returns an error if it cannot go on.
func (r *Report) examine(ctx context.Context, f file, conn *sql.Conn, s *schema) (err error) {
	if r.Schema, err = f.version(ctx, conn, s); err != nil {
		return err
	}
	if r.Schema > r.Latest {
		return f.newer(s, r.Schema, r.Latest)
	}
	schema := func(ctx context.Context, conn *sql.Conn) error {
		differences, err := s.differences(ctx, conn, r.Schema)
		r.Problems = append(r.Problems, differences...)
		r.Damaged = r.Damaged || len(differences) > 0
		return err
	}
	for _, step := range []func(context.Context, *sql.Conn) error{r.integrity, schema, r.references, r.count} {
		if err := step(ctx, conn); err != nil {
			return f.explain("check", err)
		}
	}
	if s == mainSchema && r.Schema == r.Latest && !r.Damaged {
		if err := r.rows(ctx, conn); err != nil {
			return f.explain("check", err)
		}
	}
	return nil
}

// integrity has SQLite read the whole file: its structure, its indexes, and the
// constraints of the tables.
func (r *Report) integrity(ctx context.Context, conn *sql.Conn) error {
	for text, err := range eachRow(ctx, conn, scanText, fmt.Sprintf("PRAGMA integrity_check(%d)", maxProblems)) {
		if err != nil {
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
	return nil
}

func scanText(row scanner) (text string, err error) {
	err = row.Scan(&text)
	return text, err
}

const brokenReferencesText = `SELECT 'table ' || "table" || ': ' || count(*) || ' rows refer to rows of ' || "parent" || ' that do not exist'
	FROM pragma_foreign_key_check GROUP BY "table", "parent"`

// references looks for rows that refer to others that do not exist.
func (r *Report) references(ctx context.Context, conn *sql.Conn) error {
	problems, err := allRows(ctx, conn, scanText, brokenReferencesText)
	r.Problems = append(r.Problems, problems...)
	return err
}

// count counts the rows of each table of this program.
func (r *Report) count(ctx context.Context, conn *sql.Conn) error {
	tables, err := allRows(ctx, conn, scanText, `SELECT name FROM sqlite_schema WHERE type = 'table'
		AND name <> 'goose_db_version' AND name NOT LIKE 'sqlite#_%' ESCAPE '#'`)
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

// rows examines each row: whether the store could have written it.
func (r *Report) rows(ctx context.Context, conn *sql.Conn) error {
	x := newContent(ctx, conn)
	reused := eachRow(ctx, conn, scanPet, `SELECT `+petColumns+` FROM pets
		WHERE id > (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'pets')`)
	return cmp.Or(
		checkRows(r, x.Pets, func(p store.Pet) (string, error) {
			if p.ID < 1 {
				return fmt.Sprint("pet ", p.ID), fmt.Errorf("%w: the ID of a pet must be at least 1", store.ErrInvalid)
			}
			return fmt.Sprint("pet ", p.ID), store.NewPet{Name: p.Name, CategoryID: p.CategoryID, Status: p.Status}.Validate()
		}),
		checkRows(r, x.Keys, func(k store.Key) (string, error) { return fmt.Sprintf("key %q", k.ID), checkKey(k) }),
		checkRows(r, x.DeprecatedUse, func(u store.DeprecatedUse) (string, error) {
			return fmt.Sprintf("deprecated use of %q by %q", u.Operation, u.Owner), u.Validate()
		}),
		checkRows(r, x.DeprecatedUseByDay, func(u store.DeprecatedUse) (string, error) {
			return fmt.Sprintf("deprecated use by day of %q by %q", u.Operation, u.Owner), u.Validate()
		}),
		checkRows(r, x.Audit, func(e store.AuditEntry) (string, error) {
			return fmt.Sprint("audit entry ", e.ID), e.Validate()
		}),
		checkRows(r, x.DailyUse, func(u store.DailyUse) (string, error) {
			return fmt.Sprintf("daily use of %q", u.Owner), u.Validate()
		}),
		checkRows(r, x.IdempotentRequests, func(q idempotentRequest) (string, error) {
			return fmt.Sprintf("idempotency key %q of %q", q.Key, q.Owner), q.Validate()
		}),
		checkRows(r, reused, func(p store.Pet) (string, error) {
			return fmt.Sprint("pet ", p.ID), fmt.Errorf("%w: its ID could be given to another pet", store.ErrInvalid)
		}))
}

// checkRows examines the rows of a table. The function check returns a name for a row, and
// an error that says what is wrong with it.
func checkRows[T any](r *Report, rows iter.Seq2[T, error], check func(T) (name string, err error)) error {
	found := 0
	for row, err := range rows {
		if err != nil && code(err) == sqlite3.SQLITE_OK { // not a value of its column
			r.Problems = append(r.Problems, err.Error())
			return nil
		}
		if err != nil {
			return err
		}
		if name, err := check(row); err != nil {
			if found++; found <= maxProblems {
				r.Problems = append(r.Problems, fmt.Sprintf("%s: %v", name, err))
			}
		}
	}
	if found > maxProblems {
		r.Problems = append(r.Problems, fmt.Sprintf("and %d more like these", found-maxProblems))
	}
	return nil
}

// checkKey returns what is wrong with a stored key.
func checkKey(k store.Key) error {
	if err := store.CheckText(k.ID); err != nil {
		return fmt.Errorf("%w: key ID %w", store.ErrInvalid, err)
	}
	for _, end := range []time.Time{k.Expires, k.Revoked} {
		if err := store.CheckTime(end); err != nil {
			return fmt.Errorf("%w: end of the key %w", store.ErrInvalid, err)
		}
	}
	// A key that is rotated after the clock stepped back ends before it begins.
	if !k.Expires.After(k.Created) {
		k.Expires = time.Time{}
	}
	_, limits := k.LimitsPlan()
	return cmp.Or(store.CheckKey(k.NewKey), limits)
}

// content is everything in a database.
type content struct {
	Pets               iter.Seq2[store.Pet, error]
	Keys               iter.Seq2[store.Key, error]
	Audit              iter.Seq2[store.AuditEntry, error]
	DailyUse           iter.Seq2[store.DailyUse, error]
	DeprecatedUse      iter.Seq2[store.DeprecatedUse, error]
	DeprecatedUseByDay iter.Seq2[store.DeprecatedUse, error]
	IdempotentRequests iter.Seq2[idempotentRequest, error]
}

// An idempotentRequest is the key of a request that created a pet, and that pet.
type idempotentRequest struct {
	store.IdempotencyKey
	Pet int64 // its ID
}

// newContent returns the content of a file that does not change. Each of its sequences
// keeps the only connection while it is iterated.
func newContent(ctx context.Context, on querier) content {
	return content{
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

func scanIdempotentRequest(row scanner) (r idempotentRequest, err error) {
	var fingerprint []byte
	var at int64
	err = row.Scan(&r.Owner, &r.Key, &fingerprint, &at, &r.Pet)
	copy(r.Fingerprint[:], fingerprint) // the schema has a check of its length
	r.At = instant(at)
	return r, err
}
