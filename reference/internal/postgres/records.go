package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

const (
	insertAuditText = `INSERT INTO audit (at, actor, source, action, target, detail) VALUES ($1, $2, $3, $4, $5, $6)`
	listAuditText   = `SELECT id, at, actor, source, action, target, detail FROM audit
		WHERE at >= $2 ORDER BY at DESC, id DESC LIMIT $1`

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

// lockAuditText makes transactions that add an entry wait for each other, so that IDs are
// in the order in which the entries are committed.
var lockAuditText = fmt.Sprintf("SELECT pg_advisory_xact_lock(%d, %d)", lockClass, auditLock)

// AddAudit stores an entry of the audit log. See [store.Audits].
func (s *Store) AddAudit(ctx context.Context, e store.AuditEntry) error {
	if err := e.Validate(); err != nil {
		return err
	}
	return s.transact(ctx, "add to the audit log", func(ctx context.Context, tx pgx.Tx) error {
		return addAudit(ctx, tx, e)
	})
}

// addAudit adds an entry as the last part of a transaction.
func addAudit(ctx context.Context, tx pgx.Tx, e store.AuditEntry) error {
	if _, err := tx.Exec(ctx, lockAuditText); err != nil {
		return err
	}
	return insertAudit(ctx, tx, e)
}

func insertAudit(ctx context.Context, tx pgx.Tx, e store.AuditEntry) error {
	_, err := tx.Exec(ctx, insertAuditText, toMicroseconds(e.At), e.Actor, e.From, e.Action, e.Target, e.Detail)
	return err
}

// ListAudit returns the newest entries of the audit log. See [store.Audits].
func (s *Store) ListAudit(ctx context.Context, q store.AuditQuery) ([]store.AuditEntry, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	return readAll(ctx, s, "list the audit log", func(row pgx.CollectableRow) (e store.AuditEntry, err error) {
		err = row.Scan(&e.ID, &e.At, &e.Actor, &e.From, &e.Action, &e.Target, &e.Detail)
		e.At = e.At.UTC()
		return e, err
	}, listAuditText, q.Limit, q.Since.UTC())
}

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
	owners, days := make([]string, len(uses)), make([]time.Time, len(uses))
	allowed, denied := make([]int64, len(uses)), make([]int64, len(uses))
	for i, u := range uses {
		owners[i], days[i], allowed[i], denied[i] = u.Owner, store.Day(u.Day), u.Allowed, u.Denied
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
	}, listDaysText, owner, store.Day(since))
}

// PruneDailyUse removes old counts. See [store.DailyUses].
func (s *Store) PruneDailyUse(ctx context.Context, before time.Time) error {
	for _, text := range []string{pruneDaysText, pruneUseText} {
		for removed := int64(pruneStep); removed == pruneStep; {
			err := s.write(ctx, "prune daily use", func(ctx context.Context, conn *pgxpool.Conn) error {
				tag, err := conn.Exec(ctx, text, store.Day(before), pruneStep)
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
	last, days := make([]time.Time, len(uses)), make([]time.Time, len(uses))
	for i, u := range uses {
		operations[i], owners[i], counts[i], last[i], days[i] = u.Operation, u.Owner, u.Count, toMicroseconds(u.Last), store.Day(u.Last)
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
	}, listUseText, store.Day(since))
}

// readAll returns what scan reads of each row. No rows are an empty slice.
func readAll[T any](ctx context.Context, s *Store, doing string, scan pgx.RowToFunc[T], text string, args ...any) (all []T, err error) {
	err = s.read(ctx, doing, func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, text, args...)
		if err != nil {
			return err
		}
		all, err = pgx.AppendRows([]T{}, rows, scan)
		return err
	})
	return all, err
}

// toMicroseconds returns a time with the precision that timestamptz has, in UTC.
func toMicroseconds(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
