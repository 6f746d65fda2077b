package postgres

import (
	"context"
	"encoding/hex"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

const (
	// lockOnceText makes requests with one key wait for each other. Neither an owner nor
	// a key has a control character. Keys with the same hash wait too, which is rare.
	lockOnceText = `SELECT pg_advisory_xact_lock(hashtextextended($1 || chr(10) || $2, 0))`

	// firstPetText locks the row, so that the commit of a replay waits for the synchronous
	// standby. Otherwise a pet would be acknowledged whose own commit no standby has
	// confirmed: once its wait is canceled, it can be seen.
	firstPetText = `SELECT encode(fingerprint, 'hex'), p.id, p.name, p.category_id, p.status
		FROM idempotency_keys AS k JOIN pets AS p ON p.id = k.pet
		WHERE k.owner = $1 AND k.key = $2 AND k.at > $3 FOR UPDATE OF k`

	insertOnceText = `INSERT INTO idempotency_keys (owner, key, fingerprint, pet, at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (owner, key) DO UPDATE SET fingerprint = excluded.fingerprint, pet = excluded.pet, at = excluded.at`

	// Each new key removes a few expired ones, which is more than one for each, so that
	// there are never many. It waits for no other request.
	pruneOnceText = `DELETE FROM idempotency_keys WHERE (owner, key) IN
		(SELECT owner, key FROM idempotency_keys WHERE at <= $1 ORDER BY at LIMIT 4 FOR UPDATE SKIP LOCKED)`
)

// An addFunc adds a pet in a transaction.
type addFunc func(context.Context, pgx.Tx, store.NewPet) (store.Pet, error)

// petOnce calls add for a pet of a new request.
func petOnce(ctx context.Context, tx pgx.Tx, p store.NewPet, k store.IdempotencyKey, add addFunc) (pet store.Pet, replayed bool, err error) {
	if _, err := tx.Exec(ctx, lockOnceText, k.Owner, k.Key); err != nil {
		return store.Pet{}, false, err
	}
	at := toMicroseconds(k.At)
	expired := at.Add(-store.IdempotencyLifetime)
	var fingerprint string
	err = tx.QueryRow(ctx, firstPetText, k.Owner, k.Key, expired).
		Scan(&fingerprint, &pet.ID, &pet.Name, &pet.CategoryID, &pet.Status)
	switch {
	case err == nil && fingerprint != hex.EncodeToString(k.Fingerprint[:]):
		return store.Pet{}, false, store.ErrMismatch
	case err == nil:
		return pet, true, nil
	case !errors.Is(err, pgx.ErrNoRows):
		return store.Pet{}, false, err
	}
	if pet, err = add(ctx, tx, p); err != nil {
		return store.Pet{}, false, err
	}
	if _, err := tx.Exec(ctx, insertOnceText, k.Owner, k.Key, k.Fingerprint[:], pet.ID, at); err != nil {
		return store.Pet{}, false, err
	}
	_, err = tx.Exec(ctx, pruneOnceText, expired)
	return pet, false, err
}

// lockPetsText excludes other writes to the pets until the transaction ends, and waits
// for those that have begun. Reads go on.
const lockPetsText = `LOCK TABLE pets IN SHARE ROW EXCLUSIVE MODE`

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
	add := addAlways
	if c != nil {
		add = addIf(c)
	}
	err = s.transact(ctx, "create pet", func(ctx context.Context, tx pgx.Tx) (err error) {
		if k == nil {
			pet, err = add(ctx, tx, p)
		} else {
			pet, replayed, err = petOnce(ctx, tx, p, *k, add)
		}
		return err
	})
	if err != nil {
		return store.Pet{}, false, err
	}
	return pet, replayed, nil
}

func addAlways(ctx context.Context, tx pgx.Tx, p store.NewPet) (store.Pet, error) {
	return addPet(ctx, tx, p)
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
