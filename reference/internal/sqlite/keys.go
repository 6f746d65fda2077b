package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

const (
	keyColumns = `id, digest, last_four, name, owner, plan, quotas, limits, created, expires, revoked`

	insertKeyText   = `INSERT INTO keys (` + keyColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)`
	anyKeyText      = `SELECT EXISTS (SELECT 1 FROM keys)`
	keyByIDText     = `SELECT ` + keyColumns + ` FROM keys WHERE id = ?`
	keyByDigestText = `SELECT ` + keyColumns + ` FROM keys WHERE digest = ?`
	listKeysText    = `SELECT ` + keyColumns + ` FROM keys ORDER BY created, id`
	revokeKeyText   = `UPDATE keys SET revoked = ? WHERE id = ? AND revoked IS NULL`
	endKeyAtText    = `UPDATE keys SET expires = ? WHERE id = ?`
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
	err := s.write(ctx, "create key", func(ctx context.Context) error {
		if first {
			var exists bool
			if err := s.writer.row(ctx, anyKeyText, nil, &exists); err != nil {
				return err
			}
			if exists {
				return store.ErrExists
			}
		}
		if err := s.addKey(ctx, key); err != nil {
			return err
		}
		return s.insertAudit(ctx, store.KeyCreated(key, by))
	})
	if err != nil {
		return store.Key{}, err
	}
	return key, nil
}

// KeyByDigest finds the key of a request. See [store.KeyFinder].
func (s *Store) KeyByDigest(ctx context.Context, d store.Digest) (store.Key, error) {
	k, err := oneKey(ctx, s.reads, keyByDigestText, d)
	return k, s.wrap("find key", err)
}

// Key returns one key. See [store.Keys].
func (s *Store) Key(ctx context.Context, id string) (store.Key, error) {
	k, err := oneKey(ctx, s.reads, keyByIDText, id)
	return k, s.wrap("read key", err)
}

// ListKeys returns all keys. See [store.Keys].
func (s *Store) ListKeys(ctx context.Context) ([]store.Key, error) {
	keys, err := allRows(ctx, s.reads, scanKey, listKeysText)
	return keys, s.wrap("list keys", err)
}

// RevokeKey ends a key. See [store.Keys].
func (s *Store) RevokeKey(ctx context.Context, id string, at time.Time, by store.Actor) (k store.Key, err error) {
	if at.IsZero() {
		return store.Key{}, fmt.Errorf("%w: time of revocation is missing", store.ErrInvalid)
	}
	if err := by.Validate(); err != nil {
		return store.Key{}, err
	}
	err = s.write(ctx, "revoke key", func(ctx context.Context) error {
		result, err := s.writer.exec(ctx, revokeKeyText, at.UnixMicro(), id)
		if err != nil {
			return err
		}
		if k, err = oneKey(ctx, &s.writer.prepared, keyByIDText, id); err != nil {
			return err
		}
		if n, err := result.RowsAffected(); n == 0 || err != nil {
			return err // it was revoked before
		}
		return s.insertAudit(ctx, store.KeyRevoked(k, by))
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
	err = s.write(ctx, "rotate key", func(ctx context.Context) error {
		old, err := oneKey(ctx, &s.writer.prepared, keyByIDText, id)
		if err != nil {
			return err
		}
		if !old.Active(r.At) {
			return store.ErrInactive
		}
		key = r.Next(old)
		if err := s.addKey(ctx, key); err != nil {
			return err
		}
		if _, err = s.writer.exec(ctx, endKeyAtText, r.OldExpires(old.Expires).UnixMicro(), id); err != nil {
			return err
		}
		return s.insertAudit(ctx, store.KeyRotated(old, key, r, by))
	})
	if err != nil {
		return store.Key{}, err
	}
	return key, nil
}

// addKey is called by the writer.
func (s *Store) addKey(ctx context.Context, k store.Key) error {
	expires := sql.NullInt64{Int64: k.Expires.UnixMicro(), Valid: !k.Expires.IsZero()}
	_, err := s.writer.exec(ctx, insertKeyText, k.ID, k.Digest, k.LastFour, k.Name, k.Owner, k.Plan,
		textsColumn(k.Quotas), textsColumn(k.Limits), k.Created.UnixMicro(), expires)
	if isDuplicate(err) {
		return store.ErrExists
	}
	return err
}

// oneKey returns the first key of a query.
func oneKey(ctx context.Context, on *prepared, text string, arg any) (store.Key, error) {
	for k, err := range eachRow(ctx, on, scanKey, text, arg) {
		return k, err
	}
	return store.Key{}, store.ErrNotFound
}

// scanKey reads the columns of keyColumns.
func scanKey(row scanner) (k store.Key, err error) {
	var quotas, limits []byte
	var created int64
	var expires, revoked sql.NullInt64
	err = row.Scan(&k.ID, &k.Digest, &k.LastFour, &k.Name, &k.Owner, &k.Plan, &quotas, &limits, &created, &expires, &revoked)
	if err != nil {
		return store.Key{}, err
	}
	if k.Quotas, err = scanTexts(quotas); err != nil {
		return store.Key{}, fmt.Errorf("key %s: stored quotas: %w", k.ID, err)
	}
	if k.Limits, err = scanTexts(limits); err != nil {
		return store.Key{}, fmt.Errorf("key %s: stored limits: %w", k.ID, err)
	}
	k.Created = instant(created)
	if expires.Valid {
		k.Expires = instant(expires.Int64)
	}
	if revoked.Valid {
		k.Revoked = instant(revoked.Int64)
	}
	return k, nil
}

// textsColumn is an array of texts as it is stored.
func textsColumn(texts []string) string {
	column, _ := json.Marshal(append([]string{}, texts...)) // texts are always JSON
	return string(column)
}

// scanTexts reads a column with an array of texts; none is nil.
func scanTexts(column []byte) ([]string, error) {
	if string(column) == "[]" {
		return nil, nil // most keys; a list of 100,000 takes a sixth less time
	}
	var texts []string
	if err := json.Unmarshal(column, &texts); err != nil || len(texts) == 0 {
		return nil, err
	}
	return texts, nil
}
