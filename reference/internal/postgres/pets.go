package postgres

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

const (
	insertPetText = `INSERT INTO pets (name, category_id, status) VALUES ($1, $2, $3) RETURNING id`
	petText       = `SELECT id, name, category_id, status FROM pets WHERE id = $1`
	listPetsText  = `SELECT id, name, category_id, status FROM pets WHERE id > $1 ORDER BY id LIMIT $2`

	// Only the index by status and ID has this order. With status = $3, PostgreSQL could
	// read pets of other statuses in order of their IDs, hoping to find enough soon.
	listStatusText = `SELECT id, name, category_id, status FROM pets
		WHERE (status, id) > ($3, $1) AND status <= $3 ORDER BY status, id LIMIT $2`

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

// A querier is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, text string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, text string, args ...any) pgx.Row
}

// CreatePet stores a pet. See [store.Pets].
func (s *Store) CreatePet(ctx context.Context, p store.NewPet) (pet store.Pet, err error) {
	if err := p.Validate(); err != nil {
		return store.Pet{}, err
	}
	err = s.write(ctx, "create pet", func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		pet, err = addPet(ctx, conn, p)
		return err
	})
	return pet, err
}

func addPet(ctx context.Context, on querier, p store.NewPet) (store.Pet, error) {
	pet := store.Pet{Name: p.Name, CategoryID: p.CategoryID, Status: cmp.Or(p.Status, store.Available)}
	err := on.QueryRow(ctx, insertPetText, pet.Name, pet.CategoryID, string(pet.Status)).Scan(&pet.ID)
	return pet, err
}

// CreatePetOnce stores a pet with the key of its request. See [store.Pets].
func (s *Store) CreatePetOnce(ctx context.Context, p store.NewPet, k store.IdempotencyKey) (pet store.Pet, replayed bool, err error) {
	if err := errors.Join(p.Validate(), k.Validate()); err != nil {
		return store.Pet{}, false, err
	}
	err = s.transact(ctx, "create pet", func(ctx context.Context, tx pgx.Tx) (err error) {
		if pet, replayed, err = firstPet(ctx, tx, k); replayed || err != nil {
			return err
		}
		if pet, err = addPet(ctx, tx, p); err != nil {
			return err
		}
		return addOnce(ctx, tx, k, pet.ID)
	})
	return pet, replayed, err
}

// firstPet returns the pet that a request with the key has created before, if there is one,
// and makes others with the key wait.
func firstPet(ctx context.Context, tx pgx.Tx, k store.IdempotencyKey) (pet store.Pet, found bool, err error) {
	if _, err := tx.Exec(ctx, lockOnceText, k.Owner, k.Key); err != nil {
		return store.Pet{}, false, err
	}
	var fingerprint string
	err = tx.QueryRow(ctx, firstPetText, k.Owner, k.Key, expired(k)).
		Scan(&fingerprint, &pet.ID, &pet.Name, &pet.CategoryID, &pet.Status)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return pet, false, nil
	case err == nil && fingerprint != hex.EncodeToString(k.Fingerprint[:]):
		return store.Pet{}, false, store.ErrMismatch
	}
	return pet, err == nil, err
}

// addOnce stores the key of a request.
func addOnce(ctx context.Context, tx pgx.Tx, k store.IdempotencyKey, pet int64) error {
	if _, err := tx.Exec(ctx, insertOnceText, k.Owner, k.Key, k.Fingerprint[:], pet, toMicroseconds(k.At)); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, pruneOnceText, expired(k))
	return err
}

// expired is when the keys were stored that are forgotten at the time of k.
func expired(k store.IdempotencyKey) time.Time {
	return toMicroseconds(k.At.Add(-store.IdempotencyLifetime))
}

// Pet returns one pet. See [store.Pets].
func (s *Store) Pet(ctx context.Context, id int64) (pet store.Pet, err error) {
	err = s.read(ctx, "read pet", func(ctx context.Context, conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, petText, id).Scan(&pet.ID, &pet.Name, &pet.CategoryID, &pet.Status)
	})
	return pet, err
}

// ListPets returns a page of pets. See [store.Pets].
func (s *Store) ListPets(ctx context.Context, q store.ListQuery) (pets []store.Pet, more bool, err error) {
	if err := q.Validate(); err != nil {
		return nil, false, err
	}
	// One row over the limit tells whether there are more.
	text, args := listPetsText, []any{q.After, q.Limit + 1}
	if q.Status != "" {
		text, args = listStatusText, append(args, string(q.Status))
	}
	err = s.read(ctx, "list pets", func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, text, args...)
		if err != nil {
			return err
		}
		pets, err = pgx.AppendRows(make([]store.Pet, 0, min(q.Limit+1, 100)), rows, pgx.RowToStructByPos[store.Pet])
		return err
	})
	if len(pets) > q.Limit {
		return pets[:q.Limit], true, err
	}
	return pets, false, err
}

// toMicroseconds returns a time with the precision that timestamptz has, in UTC.
func toMicroseconds(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
