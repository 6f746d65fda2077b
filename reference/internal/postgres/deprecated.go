package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

const (
	// As for addDaysText, sums come first and rows have an order.
	addUseText = `WITH new AS (
			SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::timestamptz[], $5::date[]) AS n (operation, owner, count, last, day)
		), total AS (
			INSERT INTO deprecated_use AS u (operation, owner, count, last)
			SELECT operation, owner, sum(count), max(last) FROM new
			GROUP BY operation, owner ORDER BY operation COLLATE "C", owner COLLATE "C"
			ON CONFLICT (operation, owner) DO UPDATE SET count = u.count + excluded.count, last = greatest(u.last, excluded.last)
		)
		INSERT INTO deprecated_use_by_day AS u (day, operation, owner, count)
		SELECT day, operation, owner, sum(count) FROM new
		GROUP BY day, operation, owner ORDER BY day, operation COLLATE "C", owner COLLATE "C"
		ON CONFLICT (day, operation, owner) DO UPDATE SET count = u.count + excluded.count`
	listUseText = `SELECT operation, owner, u.count, last, coalesce(r.recent, 0)::bigint
		FROM deprecated_use AS u LEFT JOIN (
			SELECT operation, owner, sum(count) AS recent FROM deprecated_use_by_day
			WHERE day >= $1 GROUP BY operation, owner
		) AS r USING (operation, owner)
		ORDER BY operation, u.count DESC, owner`
)

// AddDeprecatedUse adds to the counts. See [store.DeprecatedUses].
func (s *Store) AddDeprecatedUse(ctx context.Context, uses ...store.DeprecatedUse) error {
	for _, u := range uses {
		if err := u.Validate(); err != nil {
			return err
		}
	}
	if len(uses) == 0 {
		return nil
	}
	operations, owners, counts := make([]string, len(uses)), make([]string, len(uses)), make([]int64, len(uses))
	last, days := make([]time.Time, len(uses)), make([]pgtype.Date, len(uses))
	for i, u := range uses {
		operations[i], owners[i], counts[i], last[i], days[i] = u.Operation, u.Owner, u.Count, toMicroseconds(u.Last), dayOf(u.Last)
	}
	return s.transact(ctx, "count deprecated use", func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, addUseText, operations, owners, counts, last, days)
		return err
	})
}

// ListDeprecatedUse returns the counts. See [store.DeprecatedUses].
func (s *Store) ListDeprecatedUse(ctx context.Context, since time.Time) ([]store.DeprecatedUse, error) {
	return readAll(ctx, s, "list deprecated use", func(row pgx.CollectableRow) (u store.DeprecatedUse, err error) {
		err = row.Scan(&u.Operation, &u.Owner, &u.Count, &u.Last, &u.Recent)
		u.Last = u.Last.UTC()
		return u, err
	}, listUseText, dayOf(since))
}
