package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

const (
	keyColumns = `id, digest, last_four, name, owner, plan, quotas, limits, created, expires, revoked`

	// readKeyColumns has what scanKey reads. The form of a bytea as text depends on
	// bytea_output, which PgBouncer does not set for its clients.
	readKeyColumns = `id, encode(digest, 'hex'), last_four, name, owner, plan, quotas, limits, created, expires, revoked`

	insertKeyText = `INSERT INTO keys (` + keyColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, NULL)`
	// lockKeysText excludes other writes to the keys until the transaction ends.
	lockKeysText    = `LOCK TABLE keys IN SHARE ROW EXCLUSIVE MODE`
	anyKeyText      = `SELECT EXISTS (SELECT FROM keys)`
	keyByIDText     = `SELECT ` + readKeyColumns + ` FROM keys WHERE id = $1`
	keyByDigestText = `SELECT ` + readKeyColumns + ` FROM keys WHERE digest = $1`
	listKeysText    = `SELECT ` + readKeyColumns + ` FROM keys ORDER BY created, id`
	revokeKeyText   = `UPDATE keys SET revoked = $2 WHERE id = $1 AND revoked IS NULL RETURNING ` + readKeyColumns
	lockKeyText     = keyByIDText + ` FOR UPDATE`
	endKeyAtText    = `UPDATE keys SET expires = $2 WHERE id = $1`
)

// CreateKey stores a key. See [store.Keys].
func (s *Store) CreateKey(ctx context.Context, k store.NewKey, by store.Actor) (store.Key, error) {
	return s.createKey(ctx, k, by, false)
}

// CreateFirstKey stores a key if there is none. See [store.Keys].
func (s *Store) CreateFirstKey(ctx context.Context, k store.NewKey, by store.Actor) (store.Key, error) {
	return s.createKey(ctx, k, by, true)
}

func (s *Store) createKey(ctx context.Context, k store.NewKey, by store.Actor, first bool) (store.Key, error) {
	if err := errors.Join(k.Validate(), by.Validate()); err != nil {
		return store.Key{}, err
	}
	key := k.WithID()
	err := s.transact(ctx, "create key", func(ctx context.Context, tx pgx.Tx) error {
		if first {
			if err := checkNoKey(ctx, tx); err != nil {
				return err
			}
		}
		if err := addKey(ctx, tx, key); err != nil {
			return err
		}
		return addAudit(ctx, tx, store.KeyCreated(key, by))
	})
	if err != nil {
		return store.Key{}, err
	}
	return key, nil
}

// checkNoKey returns [store.ErrExists] if there is a key, and keeps others from storing
// one until the transaction ends.
func checkNoKey(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, lockKeysText); err != nil {
		return err
	}
	var exists bool
	if err := tx.QueryRow(ctx, anyKeyText).Scan(&exists); err != nil {
		return err
	}
	if exists {
		return store.ErrExists
	}
	return nil
}

// KeyByDigest finds the key of a request. See [store.KeyFinder].
func (s *Store) KeyByDigest(ctx context.Context, d store.Digest) (store.Key, error) {
	return s.readKey(ctx, "find key", keyByDigestText, d)
}

// Key returns one key. See [store.Keys].
func (s *Store) Key(ctx context.Context, id string) (store.Key, error) {
	return s.readKey(ctx, "read key", keyByIDText, id)
}

func (s *Store) readKey(ctx context.Context, doing, text string, arg any) (k store.Key, err error) {
	err = s.read(ctx, doing, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		k, err = scanKey(conn.QueryRow(ctx, text, arg))
		return err
	})
	return k, err
}

// ListKeys returns all keys. See [store.Keys].
func (s *Store) ListKeys(ctx context.Context) ([]store.Key, error) {
	return readAll(ctx, s, "list keys", func(row pgx.CollectableRow) (store.Key, error) { return scanKey(row) }, listKeysText)
}

// RevokeKey ends a key. See [store.Keys].
func (s *Store) RevokeKey(ctx context.Context, id string, at time.Time, by store.Actor) (k store.Key, err error) {
	if at.IsZero() {
		return store.Key{}, fmt.Errorf("%w: time of revocation is missing", store.ErrInvalid)
	}
	if err := by.Validate(); err != nil {
		return store.Key{}, err
	}
	err = s.transact(ctx, "revoke key", func(ctx context.Context, tx pgx.Tx) (err error) {
		k, err = scanKey(tx.QueryRow(ctx, revokeKeyText, id, toMicroseconds(at)))
		if errors.Is(err, pgx.ErrNoRows) { // it was revoked before, or there is none
			// The lock has the commit wait for the synchronous standby: see firstPetText.
			k, err = scanKey(tx.QueryRow(ctx, lockKeyText, id))
			return err
		}
		if err != nil {
			return err
		}
		return addAudit(ctx, tx, store.KeyRevoked(k, by))
	})
	if err != nil {
		return store.Key{}, err
	}
	return k, nil
}

// RotateKey replaces a key. See [store.Keys].
func (s *Store) RotateKey(ctx context.Context, id string, r store.Rotation, by store.Actor) (key store.Key, err error) {
	if err := errors.Join(r.Validate(), by.Validate()); err != nil {
		return store.Key{}, err
	}
	err = s.transact(ctx, "rotate key", func(ctx context.Context, tx pgx.Tx) error {
		old, err := scanKey(tx.QueryRow(ctx, lockKeyText, id))
		if err != nil {
			return err
		}
		if !old.Active(r.At) {
			return store.ErrInactive
		}
		key = r.Next(old)
		if err := addKey(ctx, tx, key); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, endKeyAtText, id, toMicroseconds(r.OldExpires(old.Expires))); err != nil {
			return err
		}
		return addAudit(ctx, tx, store.KeyRotated(old, key, r, by))
	})
	if err != nil {
		return store.Key{}, err
	}
	return key, nil
}

func addKey(ctx context.Context, tx pgx.Tx, k store.Key) error {
	_, err := tx.Exec(ctx, insertKeyText, k.ID, k.Digest, k.LastFour, k.Name, k.Owner, k.Plan,
		append([]string{}, k.Quotas...), append([]string{}, k.Limits...), k.Created, orNull(k.Expires))
	if isDuplicate(err) {
		return store.ErrExists
	}
	return err
}

// scanKey reads the columns of readKeyColumns.
func scanKey(row pgx.Row) (store.Key, error) {
	var k store.Key
	var expires, revoked *time.Time
	err := row.Scan(&k.ID, &k.Digest, &k.LastFour, &k.Name, &k.Owner, &k.Plan, &k.Quotas, &k.Limits, &k.Created, &expires, &revoked)
	if len(k.Quotas) == 0 {
		k.Quotas = nil
	}
	if len(k.Limits) == 0 {
		k.Limits = nil
	}
	k.Created, k.Expires, k.Revoked = k.Created.UTC(), orZero(expires), orZero(revoked)
	return k, err
}
