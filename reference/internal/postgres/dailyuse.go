package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

const (
	// A statement can change a row once, so sums come first. All servers write rows in
	// the same order, so that none waits for another in a circle.
	addDaysText = `INSERT INTO daily_use AS u (owner, day, allowed, denied)
		SELECT owner, day, sum(allowed), sum(denied)
		FROM unnest($1::text[], $2::date[], $3::bigint[], $4::bigint[]) AS new (owner, day, allowed, denied)
		GROUP BY owner, day ORDER BY owner COLLATE "C", day
		ON CONFLICT (owner, day) DO UPDATE SET allowed = u.allowed + excluded.allowed, denied = u.denied + excluded.denied`
	listDaysText = `SELECT day, allowed, denied FROM daily_use WHERE owner = $1 AND day >= $2 ORDER BY day`

	// Rows that another server is removing or changing are left to it.
	pruneDaysText = `DELETE FROM daily_use WHERE ctid = ANY (ARRAY
		(SELECT ctid FROM daily_use WHERE day < $1 LIMIT $2 FOR UPDATE SKIP LOCKED))`
	pruneUseText = `DELETE FROM deprecated_use_by_day WHERE ctid = ANY (ARRAY
		(SELECT ctid FROM deprecated_use_by_day WHERE day < $1 LIMIT $2 FOR UPDATE SKIP LOCKED))`
)

// pruneStep is how many rows one statement removes, which takes much less than the
// timeout.
const pruneStep = 10_000

// AddDailyUse adds to the counts. See [store.DailyUses].
func (s *Store) AddDailyUse(ctx context.Context, uses ...store.DailyUse) error {
	for _, u := range uses {
		if err := u.Validate(); err != nil {
			return err
		}
	}
	if len(uses) == 0 {
		return nil
	}
	owners, days := make([]string, len(uses)), make([]pgtype.Date, len(uses))
	allowed, denied := make([]int64, len(uses)), make([]int64, len(uses))
	for i, u := range uses {
		owners[i], days[i], allowed[i], denied[i] = u.Owner, dayOf(u.Day), u.Allowed, u.Denied
	}
	return s.transact(ctx, "count daily use", func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, addDaysText, owners, days, allowed, denied)
		return err
	})
}

// ListDailyUse returns the days of an owner. See [store.DailyUses].
func (s *Store) ListDailyUse(ctx context.Context, owner string, since time.Time) ([]store.DailyUse, error) {
	if store.CheckText(owner) != nil { // PostgreSQL refuses such a text, and no owner is called so
		return []store.DailyUse{}, nil
	}
	return readAll(ctx, s, "list daily use", func(row pgx.CollectableRow) (store.DailyUse, error) {
		u := store.DailyUse{Owner: owner}
		err := row.Scan(&u.Day, &u.Allowed, &u.Denied)
		return u, err
	}, listDaysText, owner, dayOf(since))
}

// PruneDailyUse removes old counts. See [store.DailyUses].
func (s *Store) PruneDailyUse(ctx context.Context, before time.Time) error {
	for _, text := range []string{pruneDaysText, pruneUseText} {
		for removed := int64(pruneStep); removed == pruneStep; {
			err := s.write(ctx, "prune daily use", func(ctx context.Context, conn *pgxpool.Conn) error {
				tag, err := conn.Exec(ctx, text, dayOf(before), pruneStep)
				removed = tag.RowsAffected()
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
