package keys

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// A Manager changes the keys in a store. It is safe for concurrent use.
type Manager struct {
	Store store.Keys
	Plan  PlanFunc    // the plans that a key can have
	Actor store.Actor // for the audit log
	Now   func() time.Time
}

// An Issued is a key that was just created, with its secret, which is stored nowhere.
type Issued struct {
	Key    Info   `json:"key"`
	Secret string `json:"secret"`
}

// A Revoked is a key that is revoked.
type Revoked struct {
	Key     Info `json:"key"`
	Already bool `json:"already"` // it was revoked before
}

// A Rotated is a new key and the one that it replaces.
type Rotated struct {
	Issued
	Old Info `json:"old"` // with its new expiry
}

// NewSecret returns a new key in the format of the service.
func NewSecret() (apikey.Secret, error) {
	format, err := apikey.NewFormat(api.KeyPrefix)
	if err != nil {
		return apikey.Secret{}, err
	}
	return format.Generate(), nil
}

// List returns all keys in order of their creation.
func (m Manager) List(ctx context.Context) ([]Info, error) {
	stored, err := m.Store.ListKeys(ctx)
	if err != nil {
		return nil, err
	}
	now := m.Now()
	list := make([]Info, len(stored))
	for i, k := range stored {
		list[i] = InfoOf(k, now)
	}
	return list, nil
}

// Create creates a key. The errors of [New.Check] come before anything is stored.
func (m Manager) Create(ctx context.Context, n New) (Issued, error) {
	if err := n.Check(m.Plan); err != nil {
		return Issued{}, err
	}
	secret, err := NewSecret()
	if err != nil {
		return Issued{}, err
	}
	now := m.Now()
	k := store.NewKey{
		Digest: secret.Digest(), LastFour: secret.LastFour(),
		Name: n.Name, Owner: n.Owner, Plan: n.Plan, Quotas: n.Quotas, Limits: n.Limits, Created: now,
	}
	if n.ExpiresIn > 0 {
		k.Expires = now.Add(time.Duration(n.ExpiresIn))
	}
	key, err := m.Store.CreateKey(ctx, k, m.Actor)
	if err != nil {
		return Issued{}, err
	}
	return Issued{InfoOf(key, now), secret.Reveal()}, nil
}

// Revoke revokes a key now. Running servers refuse it within one second.
func (m Manager) Revoke(ctx context.Context, id string) (Revoked, error) {
	now := m.Now()
	key, err := m.Store.RevokeKey(ctx, id, now, m.Actor)
	if err != nil {
		return Revoked{}, explain(id, err)
	}
	return Revoked{InfoOf(key, now), key.Revoked.Before(now.Truncate(time.Microsecond))}, nil
}

// Rotate replaces a key by a new one with the same name, owner, plan, quotas and limits.
func (m Manager) Rotate(ctx context.Context, id string, r Replacement) (Rotated, error) {
	if err := r.Check(); err != nil {
		return Rotated{}, err
	}
	old, err := m.Store.Key(ctx, id)
	if err != nil {
		return Rotated{}, explain(id, err)
	}
	secret, err := NewSecret()
	if err != nil {
		return Rotated{}, err
	}
	now := m.Now()
	rotation := store.Rotation{
		Digest: secret.Digest(), LastFour: secret.LastFour(),
		At: now, Overlap: r.overlap(), Expires: r.expires(old, now),
	}
	key, err := m.Store.RotateKey(ctx, id, rotation, m.Actor)
	if err != nil {
		return Rotated{}, explain(id, err)
	}
	old.Expires = rotation.OldExpires(old.Expires)
	return Rotated{Issued{InfoOf(key, now), secret.Reveal()}, InfoOf(old, now)}, nil
}

// An explained is an error with a text that says what to do.
type explained struct {
	text  string
	cause error
}

func (e explained) Error() string { return e.text }

func (e explained) Unwrap() error { return e.cause }

// explain returns the error about a key named by its ID.
func explain(id string, err error) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return explained{fmt.Sprintf("there is no key with the ID %q; petstore keys list shows the IDs", id), err}
	case errors.Is(err, store.ErrInactive):
		return explained{fmt.Sprintf("cannot rotate key %s: it is revoked or expired; create another one with petstore keys create", id), err}
	default:
		return err
	}
}
