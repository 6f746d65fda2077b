package sqlite

import (
	"context"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// An addFunc adds a pet. It is called by the writer.
type addFunc func(context.Context, store.NewPet) (store.Pet, error)

// CreatePetIf stores a pet if a condition holds. See [store.Pets].
func (s *Store) CreatePetIf(ctx context.Context, p store.NewPet, k *store.IdempotencyKey, c store.Condition) (pet store.Pet, replayed bool, err error) {
	if err := p.Validate(); err != nil {
		return store.Pet{}, false, err
	}
	if k != nil {
		if err := k.Validate(); err != nil {
			return store.Pet{}, false, err
		}
	}
	add := s.addIf(c)
	err = s.writer.write(ctx, func(ctx context.Context) (err error) {
		if k == nil {
			pet, err = add(ctx, p)
		} else {
			pet, replayed, err = s.petOnce(ctx, p, *k, add)
		}
		return err
	})
	if err != nil {
		return store.Pet{}, false, s.wrap("create pet", err)
	}
	return pet, replayed, nil
}

// addIf returns addPet for pets whose condition must hold. The transaction of the writer
// excludes other writes, also of other processes, and sees those of its own batch.
func (s *Store) addIf(c store.Condition) addFunc {
	return func(ctx context.Context, p store.NewPet) (store.Pet, error) {
		ok, err := c(func(q store.ListQuery) ([]store.Pet, bool, error) {
			return s.list(ctx, q, s.listPetsNow, s.listStatusNow)
		})
		switch {
		case err != nil:
			return store.Pet{}, err
		case !ok:
			return store.Pet{}, store.ErrCondition
		}
		return s.addPet(ctx, p)
	}
}
