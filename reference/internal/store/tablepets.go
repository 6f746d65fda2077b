package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/hex"
	"errors"

	"github.com/animalstore/gatehouse/middleware/apikey/sqlkeys"
)

// CreatePet implements [Pets].
func (t Tables) CreatePet(ctx context.Context, p NewPet) (pet Pet, err error) {
	if err := p.Validate(); err != nil {
		return Pet{}, err
	}
	err = t.statement(ctx, "create pet", func(ctx context.Context, db sqlkeys.DB) (err error) {
		pet, err = insertPet(ctx, db, p)
		return err
	})
	if err != nil {
		return Pet{}, err
	}
	return pet, nil
}

func insertPet(ctx context.Context, db sqlkeys.DB, p NewPet) (Pet, error) {
	pet := Pet{Name: p.Name, CategoryID: p.CategoryID, Status: cmp.Or(p.Status, Available)}
	err := row(ctx, db, []any{&pet.ID}, `INSERT INTO pets (name, category_id, status) VALUES ($1, $2, $3) RETURNING id`,
		pet.Name, pet.CategoryID, string(pet.Status))
	return pet, err
}

// Pet implements [Pets].
func (t Tables) Pet(ctx context.Context, id int64) (pet Pet, err error) {
	err = t.read(ctx, "read pet", func(ctx context.Context, db sqlkeys.DB) error {
		err := row(ctx, db, petColumns(&pet), PetText, id)
		if errors.Is(err, sql.ErrNoRows) {
			err = ErrNotFound
		}
		return err
	})
	return pet, err
}

// ListPets implements [Pets].
func (t Tables) ListPets(ctx context.Context, q ListQuery) (pets []Pet, more bool, err error) {
	if err := q.Validate(); err != nil {
		return nil, false, err
	}
	// One row over the limit tells whether there are more.
	text, args := ListPetsText, []any{q.After, q.Limit + 1}
	if q.Status != "" {
		text, args = t.ListStatusText(), append(args, string(q.Status))
	}
	pets, err = list(ctx, t, "list pets", petColumns, text, args...)
	if len(pets) > q.Limit {
		return pets[:q.Limit], true, nil
	}
	return pets, false, err
}

func petColumns(p *Pet) []any { return []any{&p.ID, &p.Name, &p.CategoryID, &p.Status} }

// The statements that read pets. Both databases find the rows in an index, and in order there.
const (
	PetText      = `SELECT id, name, category_id, status FROM pets WHERE id = $1`
	ListPetsText = `SELECT id, name, category_id, status FROM pets WHERE id > $1 ORDER BY id LIMIT $2`
)

// ListStatusText is [ListPetsText] for the pets of a status, which is a third argument.
func (d *Dialect) ListStatusText() string {
	return `SELECT id, name, category_id, status FROM pets WHERE ` + d.afterStatus + ` ORDER BY status, id LIMIT $2`
}

// CreatePetOnce implements [Pets].
func (t Tables) CreatePetOnce(ctx context.Context, p NewPet, k IdempotencyKey) (pet Pet, replayed bool, err error) {
	if err := cmp.Or(p.Validate(), k.Validate()); err != nil {
		return Pet{}, false, err
	}
	err = t.write(ctx, "create pet", func(ctx context.Context, db sqlkeys.DB) (err error) {
		if pet, replayed, err = t.firstPet(ctx, db, k); replayed || err != nil {
			return err
		}
		if pet, err = insertPet(ctx, db, p); err != nil {
			return err
		}
		return t.addOnce(ctx, db, k, pet.ID)
	})
	if err != nil {
		return Pet{}, false, err
	}
	return pet, replayed, nil
}

// firstPet returns the pet that a request with the key has created before, if there is one,
// and makes other requests with the key wait.
func (t Tables) firstPet(ctx context.Context, db sqlkeys.DB, k IdempotencyKey) (pet Pet, found bool, err error) {
	if t.lockOnce != "" {
		if _, err := exec(ctx, db, t.lockOnce, k.Owner, k.Key); err != nil {
			return Pet{}, false, err
		}
	}
	var fingerprint string
	err = row(ctx, db, []any{&fingerprint, &pet.ID, &pet.Name, &pet.CategoryID, &pet.Status},
		`SELECT `+t.fingerprint+`, p.id, p.name, p.category_id, p.status
		FROM idempotency_keys AS k JOIN pets AS p ON p.id = k.pet
		WHERE k.owner = $1 AND k.key = $2 AND k.at > $3 `+t.lockFirst, k.Owner, k.Key, t.expired(k))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Pet{}, false, nil
	case err != nil:
		return Pet{}, false, err
	case fingerprint != hex.EncodeToString(k.Fingerprint[:]):
		return Pet{}, false, ErrMismatch
	}
	return pet, true, nil
}

// addOnce stores the key of a request. Each new key removes up to four expired ones, so that
// expired keys do not accumulate.
func (t Tables) addOnce(ctx context.Context, db sqlkeys.DB, k IdempotencyKey, pet int64) error {
	if _, err := exec(ctx, db, `INSERT INTO idempotency_keys (owner, key, fingerprint, pet, at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (owner, key) DO UPDATE SET fingerprint = excluded.fingerprint, pet = excluded.pet, at = excluded.at`,
		k.Owner, k.Key, k.Fingerprint[:], pet, t.instant(k.At)); err != nil {
		return err
	}
	_, err := exec(ctx, db, `DELETE FROM idempotency_keys WHERE (owner, key) IN
		(SELECT owner, key FROM idempotency_keys WHERE at <= $1 ORDER BY at LIMIT 4 `+t.unlocked+`)`, t.expired(k))
	return err
}

// expired returns the time at or before which keys were stored that have expired by the time of k.
func (t Tables) expired(k IdempotencyKey) any { return t.instant(k.At.Add(-IdempotencyLifetime)) }
