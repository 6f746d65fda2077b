package sqlite

import (
	"context"
	"database/sql"
	"iter"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// eachRow returns the rows of a query, which runs when they are iterated.
func eachRow[T any](ctx context.Context, db *sql.DB, f file, query string, scan func(scanner) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		rows, err := db.QueryContext(ctx, query)
		if err != nil {
			yield(none, f.explain("read", err))
			return
		}
		defer rows.Close()
		for rows.Next() {
			row, err := scan(rows)
			if err != nil {
				yield(none, f.explain("read", err))
				return
			}
			if !yield(row, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(none, f.explain("read", err))
		}
	}
}

func scanPet(row scanner) (p store.Pet, err error) {
	err = row.Scan(&p.ID, &p.Name, &p.CategoryID, &p.Status)
	return p, err
}

func scanDailyUse(row scanner) (u store.DailyUse, err error) {
	var day int64
	err = row.Scan(&day, &u.Owner, &u.Allowed, &u.Denied)
	u.Day = dayOf(day)
	return u, err
}

// scanDeprecatedUse reads a sum or the count of a day.
func scanDeprecatedUse(row scanner) (u store.DeprecatedUse, err error) {
	var last int64
	err = row.Scan(&u.Operation, &u.Owner, &u.Count, &last)
	u.Last = instant(last)
	return u, err
}

func scanIdempotentRequest(row scanner) (r store.IdempotentRequest, err error) {
	var fingerprint []byte
	var at int64
	err = row.Scan(&r.Owner, &r.Key, &fingerprint, &at, &r.Pet)
	copy(r.Fingerprint[:], fingerprint) // the schema has a check of its length
	r.At = instant(at)
	return r, err
}
