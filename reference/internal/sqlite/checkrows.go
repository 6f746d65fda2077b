package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

type scanner interface{ Scan(...any) error }

// rowChecks say what a row of each table must be. Each reads the rows of a query and
// returns a name for the row and an error that says what is wrong with it.
var rowChecks = []struct {
	query string
	check func(scanner) (name string, err error)
}{
	{`SELECT id, name, category_id, status FROM pets`, func(row scanner) (string, error) {
		var p store.Pet
		if err := row.Scan(&p.ID, &p.Name, &p.CategoryID, &p.Status); err != nil {
			return "a pet", err
		}
		if p.ID < 1 {
			return fmt.Sprint("pet ", p.ID), fmt.Errorf("%w: the ID of a pet must be at least 1", store.ErrInvalid)
		}
		return fmt.Sprint("pet ", p.ID), store.NewPet{Name: p.Name, CategoryID: p.CategoryID, Status: p.Status}.Validate()
	}},
	{`SELECT ` + keyColumns + ` FROM keys`, func(row scanner) (string, error) {
		k, err := scanKey(row)
		if err != nil {
			return "a key", err
		}
		return fmt.Sprintf("key %q", k.ID), checkKey(k)
	}},
	{`SELECT operation, owner, count, last FROM deprecated_use`, func(row scanner) (string, error) {
		var u store.DeprecatedUse
		var last int64
		if err := row.Scan(&u.Operation, &u.Owner, &u.Count, &last); err != nil {
			return "a deprecated use", err
		}
		u.Last = instant(last)
		return fmt.Sprintf("deprecated use of %q by %q", u.Operation, u.Owner), u.Validate()
	}},
	{`SELECT day, operation, owner, count FROM deprecated_use_by_day`, func(row scanner) (string, error) {
		var u store.DeprecatedUse
		var day int64
		if err := row.Scan(&day, &u.Operation, &u.Owner, &u.Count); err != nil {
			return "a deprecated use by day", err
		}
		u.Last = dayOf(day)
		return fmt.Sprintf("deprecated use by day of %q by %q", u.Operation, u.Owner), u.Validate()
	}},
	{`SELECT ` + auditColumns + ` FROM audit`, func(row scanner) (string, error) {
		e, err := scanAudit(row)
		if err != nil {
			return "an audit entry", err
		}
		return fmt.Sprint("audit entry ", e.ID), e.Validate()
	}},
	{`SELECT day, owner, allowed, denied FROM daily_use`, func(row scanner) (string, error) {
		var u store.DailyUse
		var day int64
		if err := row.Scan(&day, &u.Owner, &u.Allowed, &u.Denied); err != nil {
			return "a daily use", err
		}
		u.Day = dayOf(day)
		return fmt.Sprintf("daily use of %q", u.Owner), u.Validate()
	}},
	{`SELECT owner, key, at FROM idempotency_keys`, func(row scanner) (string, error) {
		var k store.IdempotencyKey
		var at int64
		if err := row.Scan(&k.Owner, &k.Key, &at); err != nil {
			return "an idempotency key", err
		}
		k.At = instant(at)
		return fmt.Sprintf("idempotency key %q of %q", k.Key, k.Owner), k.Validate()
	}},
	{`SELECT id FROM pets WHERE id > (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'pets')`, func(row scanner) (string, error) {
		var id int64
		if err := row.Scan(&id); err != nil {
			return "a pet", err
		}
		return fmt.Sprint("pet ", id), fmt.Errorf("%w: its ID could be given to another pet", store.ErrInvalid)
	}},
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
	return k.Validate()
}

// rows examines each row.
func (r *Report) rows(ctx context.Context, conn *sql.Conn) error {
	for _, c := range rowChecks {
		if err := r.eachRow(ctx, conn, c.query, c.check); err != nil {
			return err
		}
	}
	return nil
}

func (r *Report) eachRow(ctx context.Context, conn *sql.Conn, query string, check func(scanner) (string, error)) error {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	found := 0
	for rows.Next() {
		if name, err := check(rows); err != nil {
			if found++; found <= maxProblems {
				r.Problems = append(r.Problems, fmt.Sprintf("%s: %v", name, err))
			}
		}
	}
	if found > maxProblems {
		r.Problems = append(r.Problems, fmt.Sprintf("and %d more like these", found-maxProblems))
	}
	return rows.Err()
}
