package sqlite

import (
	"context"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

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
