package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/middleware/apikey/sqlkeys"
)

// Tables implements [Pets], [Keys], [Audits], [DailyUses] and [DeprecatedUses] for both databases,
// which differ in a [Dialect] and in how they read and write.
type Tables struct {
	*Dialect
	read, write, statement Call
}

// A Call calls do with a database to read from, or in a transaction, and returns the error of do
// or of the database, with what the call was doing. It may call do again if nothing was stored.
type Call func(ctx context.Context, doing string, do func(context.Context, sqlkeys.DB) error) error

// NewTables returns the tables of a store. Writes of a single statement call statement instead of
// write.
func NewTables(d *Dialect, read, write, statement Call) Tables {
	return Tables{d, read, write, statement}
}

// A Dialect is what the databases do not have in common.
type Dialect struct {
	keys        func(sqlkeys.DB) *sqlkeys.Table
	instant     func(time.Time) any // as an argument, or in JSON
	day         func(time.Time) any // likewise
	dayType     string
	timeType    string
	each        string // the elements of $1, a JSON array, as rows with one column called value
	afterStatus string // the pets of status $3 whose IDs are over $1
	unlocked    string // at the end of a query: leaves out the rows that others are changing

	fingerprint string // of an idempotency key k, in hexadecimal digits
	lockFirst   string // at the end of a query of an idempotency key k

	// Statements that make transactions wait for each other. "": they do anyway.
	lockAudit string
	lockOnce  string // for one owner and key
}

// SQLite stores times as microseconds, and days as numbers, since 1970-01-01 UTC.
var SQLite = &Dialect{
	keys:    sqlkeys.NewSQLite,
	instant: func(t time.Time) any { return t.UnixMicro() },
	day:     func(t time.Time) any { return Day(t).Unix() / secondsPerDay },
	dayType: "bigint", timeType: "bigint",
	each:        "json_each($1)",
	afterStatus: "status = $3 AND id > $1",
	fingerprint: "lower(hex(k.fingerprint))",
}

// PostgreSQL has types for times and days.
var PostgreSQL = &Dialect{
	keys:    sqlkeys.NewPostgreSQL,
	instant: func(t time.Time) any { return t.UTC().Truncate(time.Microsecond) },
	day:     func(t time.Time) any { return t.UTC().Format(time.DateOnly) },
	dayType: "date", timeType: "timestamptz",
	each:     "json_array_elements($1::text::json) AS each (value)",
	unlocked: "FOR UPDATE SKIP LOCKED",
	// Only the index by status and ID has the order of a list. With status = $3, PostgreSQL could
	// read pets of other statuses in order of their IDs, hoping to find enough soon.
	afterStatus: "(status, id) > ($3, $1) AND status <= $3",

	fingerprint: "encode(k.fingerprint, 'hex')",
	// The commit of a replay waits for the synchronous standby, because it locks the row.
	// Otherwise a replay could acknowledge a pet that no standby has confirmed: the pet can be
	// seen once the wait of its own commit is canceled.
	lockFirst: "FOR UPDATE OF k",

	// So IDs are in the order in which the entries are committed. The lock of upgrades is number 1.
	lockAudit: "SELECT pg_advisory_xact_lock(1346720851, 2)",
	// Neither an owner nor a key has a control character. Keys with the same hash wait too,
	// which is rare.
	lockOnce: "SELECT pg_advisory_xact_lock(hashtextextended($1 || chr(10) || $2, 0))",
}

// exec runs a statement that returns no more rows than it changes, and returns their number.
func exec(ctx context.Context, db sqlkeys.DB, text string, args ...any) (returned int, err error) {
	rows, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		returned++
	}
	return returned, rows.Err()
}

// row reads the columns of one row. Without one the error is [sql.ErrNoRows].
func row(ctx context.Context, db sqlkeys.DB, into []any, text string, args ...any) error {
	rows, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	if rows.Next() {
		return errors.Join(rows.Scan(into...), rows.Close())
	}
	return cmp.Or(rows.Err(), sql.ErrNoRows)
}

// list returns the rows of a query. No rows are an empty slice.
func list[R any](ctx context.Context, t Tables, doing string, columns func(*R) []any, text string, args ...any) (all []R, err error) {
	err = t.read(ctx, doing, func(ctx context.Context, db sqlkeys.DB) error {
		rows, err := db.QueryContext(ctx, text, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		all = []R{}
		for rows.Next() {
			var row R
			if err := rows.Scan(columns(&row)...); err != nil {
				return err
			}
			all = append(all, row)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

const secondsPerDay = 24 * 60 * 60

// An instant scans a column with a time.
type instant time.Time

func (i *instant) Scan(column any) error {
	switch column := column.(type) {
	case int64:
		*i = instant(time.UnixMicro(column).UTC())
	case time.Time:
		*i = instant(column.UTC())
	default:
		return fmt.Errorf("a column of type %T is not a time", column)
	}
	return nil
}

// A date scans a column with a day.
type date time.Time

func (d *date) Scan(column any) error {
	if number, ok := column.(int64); ok {
		*d = date(DayOf(number))
		return nil
	}
	return (*instant)(d).Scan(column)
}

// DayOf returns the beginning of a day of [SQLite]. A number that no store has written is a day
// far outside of what [CheckTime] allows.
func DayOf(number int64) time.Time {
	const far = 10_000_000
	return time.Unix(min(max(number, -far), far)*secondsPerDay, 0).UTC()
}

// AddAudit implements [Audits].
func (t Tables) AddAudit(ctx context.Context, e AuditEntry) error {
	if err := e.Validate(); err != nil {
		return err
	}
	return t.write(ctx, "add to the audit log", func(ctx context.Context, db sqlkeys.DB) error { return t.audit(ctx, db, e) })
}

// audit adds an entry as the last part of a transaction.
func (t Tables) audit(ctx context.Context, db sqlkeys.DB, e AuditEntry) error {
	if t.lockAudit != "" {
		if _, err := exec(ctx, db, t.lockAudit); err != nil {
			return err
		}
	}
	return InsertAudit(ctx, t.Dialect, db, e)
}

// InsertAudit adds an entry in a transaction beside which no other one can add entries.
func InsertAudit(ctx context.Context, d *Dialect, db sqlkeys.DB, e AuditEntry) error {
	_, err := exec(ctx, db, `INSERT INTO audit (at, actor, source, action, target, detail) VALUES ($1, $2, $3, $4, $5, $6)`,
		d.instant(e.At), e.Actor, e.From, e.Action, e.Target, e.Detail)
	return err
}

// ListAudit implements [Audits].
func (t Tables) ListAudit(ctx context.Context, q AuditQuery) ([]AuditEntry, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	return list(ctx, t, "list the audit log", func(e *AuditEntry) []any {
		return []any{&e.ID, (*instant)(&e.At), &e.Actor, &e.From, &e.Action, &e.Target, &e.Detail}
	}, `SELECT id, at, actor, source, action, target, detail FROM audit
		WHERE at >= $1 ORDER BY at DESC, id DESC LIMIT $2`, t.instant(q.Since), q.Limit)
}

// add adds counts with statements whose parameter has all of them as JSON.
func add[U interface{ Validate() error }](ctx context.Context, t Tables, doing string, uses []U, values func(U) []any, statements ...string) error {
	all := make([][]any, len(uses))
	for i, u := range uses {
		if err := u.Validate(); err != nil {
			return err
		}
		all[i] = values(u)
	}
	if len(uses) == 0 {
		return nil
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return t.write(ctx, doing, func(ctx context.Context, db sqlkeys.DB) error {
		for _, statement := range statements {
			if _, err := exec(ctx, db, statement, string(text)); err != nil {
				return err
			}
		}
		return nil
	})
}

// AddDailyUse implements [DailyUses].
func (t Tables) AddDailyUse(ctx context.Context, uses ...DailyUse) error {
	// In PostgreSQL a statement can change a row once, so sums come first. All servers write
	// rows in the same order, so that none waits for another in a circle.
	return add(ctx, t, "count daily use", uses, func(u DailyUse) []any {
		return []any{t.day(u.Day), u.Owner, u.Allowed, u.Denied}
	}, `INSERT INTO daily_use (day, owner, allowed, denied)
		SELECT CAST(value->>0 AS `+t.dayType+`), value->>1, sum(CAST(value->>2 AS bigint)), sum(CAST(value->>3 AS bigint))
		FROM `+t.each+` GROUP BY 1, 2 ORDER BY 1, 2
		ON CONFLICT (day, owner) DO UPDATE SET
			allowed = daily_use.allowed + excluded.allowed,
			denied = daily_use.denied + excluded.denied`)
}

// ListDailyUse implements [DailyUses].
func (t Tables) ListDailyUse(ctx context.Context, owner string, since time.Time) ([]DailyUse, error) {
	if CheckText(owner) != nil { // PostgreSQL refuses such a text, and no owner is called so
		return []DailyUse{}, nil
	}
	// One look-up for each day that there is, rather than a scan of all owners.
	return list(ctx, t, "list daily use", func(u *DailyUse) []any {
		return []any{(*date)(&u.Day), &u.Owner, &u.Allowed, &u.Denied}
	}, `WITH RECURSIVE days (day) AS (
			SELECT min(day) FROM daily_use WHERE day >= CAST($1 AS `+t.dayType+`)
			UNION ALL
			SELECT (SELECT min(day) FROM daily_use WHERE day > days.day) FROM days WHERE day IS NOT NULL
		)
		SELECT day, owner, allowed, denied FROM days JOIN daily_use USING (day) WHERE owner = $2 ORDER BY day`, t.day(since), owner)
}

// pruneStep is how many rows one statement removes. Pets wait for the same writer of SQLite, so
// a write must be short.
const pruneStep = 2000

// PruneDailyUse implements [DailyUses].
func (t Tables) PruneDailyUse(ctx context.Context, before time.Time) error {
	for table, key := range map[string]string{"daily_use": "day, owner", "deprecated_use_by_day": "day, operation, owner"} {
		text := `DELETE FROM ` + table + ` WHERE (` + key + `) IN (SELECT ` + key + ` FROM ` + table + `
			WHERE day < CAST($1 AS ` + t.dayType + `) LIMIT $2 ` + t.unlocked + `) RETURNING 1`
		for removed := pruneStep; removed >= pruneStep; {
			if err := t.write(ctx, "prune daily use", func(ctx context.Context, db sqlkeys.DB) (err error) {
				removed, err = exec(ctx, db, text, t.day(before), pruneStep)
				return err
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// AddDeprecatedUse implements [DeprecatedUses].
func (t Tables) AddDeprecatedUse(ctx context.Context, uses ...DeprecatedUse) error {
	// As for daily use, sums come first and rows have an order.
	return add(ctx, t, "count deprecated use", uses, func(u DeprecatedUse) []any {
		return []any{u.Operation, u.Owner, u.Count, t.instant(u.Last), t.day(u.Last)}
	}, `INSERT INTO deprecated_use (operation, owner, count, last)
		SELECT value->>0, value->>1, sum(CAST(value->>2 AS bigint)), max(CAST(value->>3 AS `+t.timeType+`))
		FROM `+t.each+` GROUP BY 1, 2 ORDER BY 1, 2
		ON CONFLICT (operation, owner) DO UPDATE SET
			count = deprecated_use.count + excluded.count,
			last = CASE WHEN deprecated_use.last < excluded.last THEN excluded.last ELSE deprecated_use.last END`,
		`INSERT INTO deprecated_use_by_day (day, operation, owner, count)
		SELECT CAST(value->>4 AS `+t.dayType+`), value->>0, value->>1, sum(CAST(value->>2 AS bigint))
		FROM `+t.each+` GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
		ON CONFLICT (day, operation, owner) DO UPDATE SET count = deprecated_use_by_day.count + excluded.count`)
}

// ListDeprecatedUse implements [DeprecatedUses].
func (t Tables) ListDeprecatedUse(ctx context.Context, since time.Time) ([]DeprecatedUse, error) {
	return list(ctx, t, "list deprecated use", func(u *DeprecatedUse) []any {
		return []any{&u.Operation, &u.Owner, &u.Count, (*instant)(&u.Last), &u.Recent}
	}, `SELECT operation, owner, u.count, last, CAST(coalesce(r.recent, 0) AS bigint)
		FROM deprecated_use AS u LEFT JOIN (
			SELECT operation, owner, sum(count) AS recent FROM deprecated_use_by_day
			WHERE day >= CAST($1 AS `+t.dayType+`) GROUP BY operation, owner
		) AS r USING (operation, owner)
		ORDER BY operation, u.count DESC, owner`, t.day(since))
}
