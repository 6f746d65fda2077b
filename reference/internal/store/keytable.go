package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/middleware/apikey/sqlkeys"
)

// CreateKey implements [Keys].
func (t Tables) CreateKey(ctx context.Context, k NewKey, by Actor) (Key, error) {
	return t.create(ctx, k, by, (*sqlkeys.Table).Create)
}

// CreateFirstKey implements [Keys].
func (t Tables) CreateFirstKey(ctx context.Context, k NewKey, by Actor) (Key, error) {
	return t.create(ctx, k, by, (*sqlkeys.Table).CreateFirst)
}

func (t Tables) create(ctx context.Context, k NewKey, by Actor, create func(*sqlkeys.Table, context.Context, NewKey) (Key, error)) (Key, error) {
	if err := errors.Join(CheckKey(k), by.Validate()); err != nil {
		return Key{}, err
	}
	return t.change(ctx, "create key", func(ctx context.Context, keys *sqlkeys.Table, audit func(AuditEntry) error) (Key, error) {
		key, err := create(keys, ctx, k)
		if err != nil {
			return Key{}, err
		}
		return key, audit(keyCreated(key, by))
	})
}

// KeyByDigest implements [KeyFinder].
func (t Tables) KeyByDigest(ctx context.Context, d Digest) (Key, error) {
	return find(ctx, t, "find key", d, (*sqlkeys.Table).ByDigest)
}

// KeyUsed implements [KeyFinder].
func (t Tables) KeyUsed(ctx context.Context, id string, at time.Time) error {
	return t.write(ctx, "note the use of a key", func(ctx context.Context, db sqlkeys.DB) error { return t.keys(db).Used(ctx, id, at) })
}

// Key implements [Keys].
func (t Tables) Key(ctx context.Context, id string) (Key, error) {
	return find(ctx, t, "read key", id, (*sqlkeys.Table).ByID)
}

// ListKeys implements [Keys].
func (t Tables) ListKeys(ctx context.Context) ([]Key, error) {
	return find(ctx, t, "list keys", "", (*sqlkeys.Table).List)
}

func find[By, T any](ctx context.Context, t Tables, doing string, by By, method func(*sqlkeys.Table, context.Context, By) (T, error)) (found T, err error) {
	err = t.read(ctx, doing, func(ctx context.Context, db sqlkeys.DB) (err error) {
		found, err = method(t.keys(db), ctx, by)
		return err
	})
	return found, err
}

// RevokeKey implements [Keys].
func (t Tables) RevokeKey(ctx context.Context, id string, at time.Time, by Actor) (Key, error) {
	if err := errors.Join(checkTime("time of revocation", at), by.Validate()); err != nil {
		return Key{}, err
	}
	return t.change(ctx, "revoke key", func(ctx context.Context, keys *sqlkeys.Table, audit func(AuditEntry) error) (Key, error) {
		key, changed, err := keys.Revoke(ctx, id, at)
		if err != nil || !changed {
			return key, err
		}
		return key, audit(keyRevoked(key, by))
	})
}

// RotateKey implements [Keys].
func (t Tables) RotateKey(ctx context.Context, id string, r Rotation, by Actor) (Key, error) {
	// The new key has the texts of the old one.
	err := CheckKey(NewKey{Name: "-", Owner: "-", Plan: "-", Created: r.At, Expires: r.Expires})
	if r.Overlap < 0 {
		err = fmt.Errorf("%w: rotation overlap must not be negative, got %v", ErrInvalid, r.Overlap)
	}
	if err := errors.Join(err, by.Validate()); err != nil {
		return Key{}, err
	}
	return t.change(ctx, "rotate key", func(ctx context.Context, keys *sqlkeys.Table, audit func(AuditEntry) error) (Key, error) {
		old, fresh, err := keys.Rotate(ctx, id, NewKey{Digest: r.Digest, LastFour: r.LastFour, Created: r.At, Expires: r.Expires}, r.Overlap)
		if err != nil {
			return Key{}, err
		}
		return fresh, audit(keyRotated(old, fresh, by))
	})
}

// change returns the key of a transaction that is committed. Audit adds an entry to it.
func (t Tables) change(ctx context.Context, doing string, do func(ctx context.Context, keys *sqlkeys.Table, audit func(AuditEntry) error) (Key, error)) (key Key, err error) {
	err = t.write(ctx, doing, func(ctx context.Context, db sqlkeys.DB) (err error) {
		key, err = do(ctx, t.keys(db), func(e AuditEntry) error { return t.audit(ctx, db, e) })
		return err
	})
	if err != nil {
		return Key{}, err
	}
	return key, nil
}
