package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

const (
	firstPetText = `SELECT fingerprint, p.id, p.name, p.category_id, p.status
		FROM idempotency_keys AS k JOIN pets AS p ON p.id = k.pet
		WHERE k.owner = ? AND k.key = ? AND k.at > ?`
	insertOnceText = `INSERT OR REPLACE INTO idempotency_keys (owner, key, fingerprint, pet, at) VALUES (?, ?, ?, ?, ?)`

	// Each new key removes a few expired ones, which is more than one for each, so that
	// there are never many.
	pruneOnceText = `DELETE FROM idempotency_keys WHERE (owner, key) IN
		(SELECT owner, key FROM idempotency_keys WHERE at <= ? ORDER BY at LIMIT 4)`
)

// petOnce is called by the writer. It calls add for a pet of a new request.
func (s *Store) petOnce(ctx context.Context, p store.NewPet, k store.IdempotencyKey, add addFunc) (pet store.Pet, replayed bool, err error) {
	expired := k.At.Add(-store.IdempotencyLifetime).UnixMicro()
	var fingerprint []byte
	err = s.firstPet.QueryRowContext(ctx, k.Owner, k.Key, expired).
		Scan(&fingerprint, &pet.ID, &pet.Name, &pet.CategoryID, &pet.Status)
	switch {
	case err == nil && string(fingerprint) != string(k.Fingerprint[:]):
		return store.Pet{}, false, store.ErrMismatch
	case err == nil:
		return pet, true, nil
	case !errors.Is(err, sql.ErrNoRows):
		return store.Pet{}, false, err
	}
	if pet, err = add(ctx, p); err != nil {
		return store.Pet{}, false, err
	}
	if _, err := s.insertOnce.ExecContext(ctx, k.Owner, k.Key, k.Fingerprint[:], pet.ID, k.At.UnixMicro()); err != nil {
		return store.Pet{}, false, err
	}
	_, err = s.pruneOnce.ExecContext(ctx, expired)
	return pet, false, err
}

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
	add := s.addPet
	if c != nil {
		add = s.addIf(c)
	}
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
