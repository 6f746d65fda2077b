package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// lockPetsText excludes other writes to the pets until the transaction ends, and waits
// for those that have begun. Reads go on.
const lockPetsText = `LOCK TABLE pets IN SHARE ROW EXCLUSIVE MODE`

// CreatePetIf stores a pet if a condition holds. See [store.Pets].
func (s *Store) CreatePetIf(ctx context.Context, p store.NewPet, k *store.IdempotencyKey, c store.Condition) (pet store.Pet, replayed bool, err error) {
	if err := p.Validate(); err != nil {
		return store.Pet{}, false, err
	}
	add := addIf(c)
	if k != nil {
		if err := k.Validate(); err != nil {
			return store.Pet{}, false, err
		}
		return s.createOnce(ctx, p, *k, add)
	}
	err = s.transact(ctx, "create pet", func(ctx context.Context, tx pgx.Tx) (err error) {
		pet, err = add(ctx, tx, p)
		return err
	})
	if err != nil {
		return store.Pet{}, false, err
	}
	return pet, false, nil
}

// addIf returns a function that adds a pet if a condition holds.
func addIf(c store.Condition) addFunc {
	return func(ctx context.Context, tx pgx.Tx, p store.NewPet) (store.Pet, error) {
		if _, err := tx.Exec(ctx, lockPetsText); err != nil {
			return store.Pet{}, err
		}
		ok, err := c(func(q store.ListQuery) ([]store.Pet, bool, error) {
			if err := q.Validate(); err != nil {
				return nil, false, err
			}
			return list(ctx, tx, q)
		})
		switch {
		case err != nil:
			return store.Pet{}, err
		case !ok:
			return store.Pet{}, store.ErrCondition
		}
		return addPet(ctx, tx, p)
	}
}
