package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

const (
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
		SELECT day, allowed, denied FROM days JOIN daily_use USING (day) WHERE owner = ? ORDER BY day`

	pruneDaysText = `DELETE FROM daily_use WHERE (day, owner) IN
		(SELECT day, owner FROM daily_use WHERE day < ? LIMIT ?)`
	pruneUseText = `DELETE FROM deprecated_use_by_day WHERE (day, operation, owner) IN
		(SELECT day, operation, owner FROM deprecated_use_by_day WHERE day < ? LIMIT ?)`
)

// pruneDaysStep is how many rows one write removes. Pets wait for the same writer, so
// a write must be short.
const pruneDaysStep = 2000

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
	err := s.writer.write(ctx, func(ctx context.Context) error {
		for _, u := range uses {
			if _, err := s.addDay.ExecContext(ctx, dayNumber(u.Day), u.Owner, u.Allowed, u.Denied); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return s.wrap("count daily use", err)
	}
	return nil
}

// ListDailyUse returns the days of an owner. See [store.DailyUses].
func (s *Store) ListDailyUse(ctx context.Context, owner string, since time.Time) ([]store.DailyUse, error) {
	rows, err := s.listDays.QueryContext(ctx, dayNumber(since), owner)
	if err != nil {
		return nil, s.wrap("list daily use", err)
	}
	defer rows.Close()

	uses := []store.DailyUse{}
	for rows.Next() {
		u := store.DailyUse{Owner: owner}
		var day int64
		if err := rows.Scan(&day, &u.Allowed, &u.Denied); err != nil {
			return nil, s.wrap("list daily use", err)
		}
		u.Day = dayOf(day)
		uses = append(uses, u)
	}
	if err := rows.Err(); err != nil {
		return nil, s.wrap("list daily use", err)
	}
	return uses, nil
}

// PruneDailyUse removes old counts. See [store.DailyUses].
func (s *Store) PruneDailyUse(ctx context.Context, before time.Time) error {
	for _, stmt := range []*sql.Stmt{s.pruneDays, s.pruneUse} {
		if err := s.pruneStepwise(ctx, stmt, dayNumber(before)); err != nil {
			return s.wrap("prune daily use", err)
		}
	}
	return nil
}

// pruneStepwise removes some rows in each write until there are none left.
func (s *Store) pruneStepwise(ctx context.Context, stmt *sql.Stmt, day int64) error {
	for {
		var removed int64
		err := s.writer.write(ctx, func(ctx context.Context) error {
			result, err := stmt.ExecContext(ctx, day, pruneDaysStep)
			if err != nil {
				return err
			}
			removed, err = result.RowsAffected()
			return err
		})
		if err != nil || removed < pruneDaysStep {
			return err
		}
	}
}

const secondsPerDay = 24 * 60 * 60

// dayNumber returns the number of the UTC day that t is in, counted from 1970-01-01.
func dayNumber(t time.Time) int64 { return store.Day(t).Unix() / secondsPerDay }

// dayOf returns the beginning of the day with a number. A number that no
// store has written is a day far outside of what [store.CheckTime] allows.
func dayOf(number int64) time.Time {
	const far = 10_000_000
	return time.Unix(min(max(number, -far), far)*secondsPerDay, 0).UTC()
}

const (
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
	err := s.writer.write(ctx, func(ctx context.Context) error {
		for _, u := range uses {
			if _, err := s.addUse.ExecContext(ctx, u.Operation, u.Owner, u.Count, u.Last.UnixMicro()); err != nil {
				return err
			}
			if _, err := s.addUseDay.ExecContext(ctx, dayNumber(u.Last), u.Operation, u.Owner, u.Count); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return s.wrap("count deprecated use", err)
	}
	return nil
}

// ListDeprecatedUse returns the counts. See [store.DeprecatedUses].
func (s *Store) ListDeprecatedUse(ctx context.Context, since time.Time) ([]store.DeprecatedUse, error) {
	rows, err := s.listUse.QueryContext(ctx, dayNumber(since))
	if err != nil {
		return nil, s.wrap("list deprecated use", err)
	}
	defer rows.Close()

	uses := []store.DeprecatedUse{}
	for rows.Next() {
		var u store.DeprecatedUse
		var last int64
		if err := rows.Scan(&u.Operation, &u.Owner, &u.Count, &last, &u.Recent); err != nil {
			return nil, s.wrap("list deprecated use", err)
		}
		u.Last = instant(last)
		uses = append(uses, u)
	}
	if err := rows.Err(); err != nil {
		return nil, s.wrap("list deprecated use", err)
	}
	return uses, nil
}
