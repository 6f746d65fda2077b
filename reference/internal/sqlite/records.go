package sqlite

import (
	"context"
	"math"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

const (
	auditColumns = `id, at, actor, source, action, target, detail`

	addAuditText  = `INSERT INTO audit (at, actor, source, action, target, detail) VALUES (?, ?, ?, ?, ?, ?)`
	listAuditText = `SELECT ` + auditColumns + ` FROM audit
		WHERE at >= ? ORDER BY at DESC, id DESC LIMIT ?`

	addDayText = `INSERT INTO daily_use (day, owner, allowed, denied) VALUES (?, ?, ?, ?)
		ON CONFLICT (day, owner) DO UPDATE SET
			allowed = allowed + excluded.allowed,
			denied = denied + excluded.denied`

	// One look-up for each day that there is, rather than a scan of all owners.
	listDaysText = `WITH RECURSIVE days (day) AS (
			SELECT min(day) FROM daily_use WHERE day >= ?
			UNION ALL
			SELECT (SELECT min(day) FROM daily_use WHERE day > days.day) FROM days WHERE day IS NOT NULL
		)
		SELECT day, owner, allowed, denied FROM days JOIN daily_use USING (day) WHERE owner = ? ORDER BY day`

	pruneDaysText = `DELETE FROM daily_use WHERE (day, owner) IN
		(SELECT day, owner FROM daily_use WHERE day < ? LIMIT ?)`
	pruneUseText = `DELETE FROM deprecated_use_by_day WHERE (day, operation, owner) IN
		(SELECT day, operation, owner FROM deprecated_use_by_day WHERE day < ? LIMIT ?)`

	addUseText = `INSERT INTO deprecated_use (operation, owner, count, last) VALUES (?, ?, ?, ?)
		ON CONFLICT (operation, owner) DO UPDATE SET
			count = count + excluded.count,
			last = max(last, excluded.last)`
	addUseDayText = `INSERT INTO deprecated_use_by_day (day, operation, owner, count) VALUES (?, ?, ?, ?)
		ON CONFLICT (day, operation, owner) DO UPDATE SET count = count + excluded.count`
	listUseText = `SELECT operation, owner, u.count, last, coalesce(r.recent, 0)
		FROM deprecated_use AS u LEFT JOIN (
			SELECT operation, owner, sum(count) AS recent FROM deprecated_use_by_day
			WHERE day >= ? GROUP BY operation, owner
		) AS r USING (operation, owner)
		ORDER BY operation, u.count DESC, owner`
)

// AddAudit stores an entry of the audit log. See [store.Audits].
func (s *Store) AddAudit(ctx context.Context, e store.AuditEntry) error {
	if err := e.Validate(); err != nil {
		return err
	}
	return s.write(ctx, "add to the audit log", func(ctx context.Context) error { return s.insertAudit(ctx, e) })
}

// insertAudit is called by the writer.
func (s *Store) insertAudit(ctx context.Context, e store.AuditEntry) error {
	_, err := s.writer.exec(ctx, addAuditText, e.At.UnixMicro(), e.Actor, e.From, e.Action, e.Target, e.Detail)
	return err
}

// ListAudit returns the newest entries of the audit log. See [store.Audits].
func (s *Store) ListAudit(ctx context.Context, q store.AuditQuery) ([]store.AuditEntry, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	since := int64(math.MinInt64)
	if !q.Since.IsZero() {
		since = q.Since.UnixMicro()
	}
	entries, err := allRows(ctx, s.reads, scanAudit, listAuditText, since, q.Limit)
	return entries, s.wrap("list the audit log", err)
}

// scanAudit reads the columns of auditColumns.
func scanAudit(row scanner) (e store.AuditEntry, err error) {
	var at int64
	err = row.Scan(&e.ID, &at, &e.Actor, &e.From, &e.Action, &e.Target, &e.Detail)
	e.At = instant(at)
	return e, err
}

// AddDailyUse adds to the counts. See [store.DailyUses].
func (s *Store) AddDailyUse(ctx context.Context, uses ...store.DailyUse) error {
	return addAll(ctx, s, "count daily use", uses, func(ctx context.Context, u store.DailyUse) error {
		_, err := s.writer.exec(ctx, addDayText, dayNumber(u.Day), u.Owner, u.Allowed, u.Denied)
		return err
	})
}

// addAll adds counts in one write.
func addAll[U interface{ Validate() error }](ctx context.Context, s *Store, doing string, uses []U, add func(context.Context, U) error) error {
	for _, u := range uses {
		if err := u.Validate(); err != nil {
			return err
		}
	}
	if len(uses) == 0 {
		return nil
	}
	return s.write(ctx, doing, func(ctx context.Context) error {
		for _, u := range uses {
			if err := add(ctx, u); err != nil {
				return err
			}
		}
		return nil
	})
}

// ListDailyUse returns the days of an owner. See [store.DailyUses].
func (s *Store) ListDailyUse(ctx context.Context, owner string, since time.Time) ([]store.DailyUse, error) {
	uses, err := allRows(ctx, s.reads, scanDailyUse, listDaysText, dayNumber(since), owner)
	return uses, s.wrap("list daily use", err)
}

func scanDailyUse(row scanner) (u store.DailyUse, err error) {
	var day int64
	err = row.Scan(&day, &u.Owner, &u.Allowed, &u.Denied)
	u.Day = dayOf(day)
	return u, err
}

// pruneStep is how many rows one write removes. Pets wait for the same writer, so a write
// must be short.
const pruneStep = 2000

// PruneDailyUse removes old counts. See [store.DailyUses].
func (s *Store) PruneDailyUse(ctx context.Context, before time.Time) error {
	for _, text := range []string{pruneDaysText, pruneUseText} {
		for removed := int64(pruneStep); removed == pruneStep; {
			err := s.write(ctx, "prune daily use", func(ctx context.Context) error {
				result, err := s.writer.exec(ctx, text, dayNumber(before), pruneStep)
				if err != nil {
					return err
				}
				removed, err = result.RowsAffected()
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
	return addAll(ctx, s, "count deprecated use", uses, func(ctx context.Context, u store.DeprecatedUse) error {
		if _, err := s.writer.exec(ctx, addUseText, u.Operation, u.Owner, u.Count, u.Last.UnixMicro()); err != nil {
			return err
		}
		_, err := s.writer.exec(ctx, addUseDayText, dayNumber(u.Last), u.Operation, u.Owner, u.Count)
		return err
	})
}

// ListDeprecatedUse returns the counts. See [store.DeprecatedUses].
func (s *Store) ListDeprecatedUse(ctx context.Context, since time.Time) ([]store.DeprecatedUse, error) {
	uses, err := allRows(ctx, s.reads, scanDeprecatedUse, listUseText, dayNumber(since))
	return uses, s.wrap("list deprecated use", err)
}

func scanDeprecatedUse(row scanner) (u store.DeprecatedUse, err error) {
	var last int64
	err = row.Scan(&u.Operation, &u.Owner, &u.Count, &last, &u.Recent)
	u.Last = instant(last)
	return u, err
}

// instant returns a stored time.
func instant(micro int64) time.Time { return time.UnixMicro(micro).UTC() }

const secondsPerDay = 24 * 60 * 60

// dayNumber returns the number of the UTC day that t is in, counted from 1970-01-01.
func dayNumber(t time.Time) int64 { return store.Day(t).Unix() / secondsPerDay }

// dayOf returns the beginning of the day with a number. A number that no
// store has written is a day far outside of what [store.CheckTime] allows.
func dayOf(number int64) time.Time {
	const far = 10_000_000
	return time.Unix(min(max(number, -far), far)*secondsPerDay, 0).UTC()
}
