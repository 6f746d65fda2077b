package sqlite

import (
	"context"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

const (
	addUseText = `INSERT INTO deprecated_use (operation, owner, count, last) VALUES (?, ?, ?, ?)
		ON CONFLICT (operation, owner) DO UPDATE SET
			count = count + excluded.count,
			last = max(last, excluded.last)`
	listUseText = `SELECT operation, owner, count, last FROM deprecated_use
		ORDER BY operation, count DESC, owner`
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
		}
		return nil
	})
	if err != nil {
		return s.wrap("count deprecated use", err)
	}
	return nil
}

// ListDeprecatedUse returns the counts. See [store.DeprecatedUses].
func (s *Store) ListDeprecatedUse(ctx context.Context) ([]store.DeprecatedUse, error) {
	rows, err := s.listUse.QueryContext(ctx)
	if err != nil {
		return nil, s.wrap("list deprecated use", err)
	}
	defer rows.Close()

	uses := []store.DeprecatedUse{}
	for rows.Next() {
		var u store.DeprecatedUse
		var last int64
		if err := rows.Scan(&u.Operation, &u.Owner, &u.Count, &last); err != nil {
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
