// Package keys creates, lists, revokes and rotates API keys for an operator. The command
// line and the admin listener use it, so that both have the same rules and the same
// errors.
//
//	manager := keys.Manager{Store: db, Plan: settings.Plans.Of, Actor: store.Actor{Name: "admin"}}
//	issued, err := manager.Create(ctx, keys.New{Name: "web shop", Owner: "ada", Plan: "pro"})
//	fmt.Println(issued.Secret) // it is not shown again
//
// Its types are also what the admin listener receives and sends in JSON.
package keys

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/duration"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// An Info describes a key without its secret.
type Info struct {
	ID       string     `json:"id"`
	LastFour string     `json:"lastFour"` // the last four characters of the key
	Name     string     `json:"name"`
	Owner    string     `json:"owner"`
	Plan     string     `json:"plan"`
	Quotas   []string   `json:"quotas,omitempty"` // of a custom plan
	Limits   []string   `json:"limits,omitempty"` // quotas of the key alone
	State    string     `json:"state"`            // active, expired or revoked
	Created  time.Time  `json:"created"`
	Expires  *time.Time `json:"expires,omitempty"` // nil: never
	Revoked  *time.Time `json:"revoked,omitempty"` // nil: not revoked
}

// InfoOf describes a stored key at an instant.
func InfoOf(k store.Key, at time.Time) Info {
	return Info{
		ID: k.ID, LastFour: k.LastFour, Name: k.Name, Owner: k.Owner, Plan: k.Plan, Quotas: k.Quotas, Limits: k.Limits,
		State: stateOf(k, at), Created: k.Created, Expires: optional(k.Expires), Revoked: optional(k.Revoked),
	}
}

func stateOf(k store.Key, at time.Time) string {
	switch {
	case !k.Revoked.IsZero() && !k.Revoked.After(at):
		return "revoked"
	case !k.Active(at):
		return "expired"
	default:
		return "active"
	}
}

func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

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
	old.Expires = apikey.Record[apikey.Principal]{Expires: old.Expires}.ExpireAfter(now, rotation.Overlap).Expires
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

// A Duration is a [time.Duration] that is text in JSON and in flags, such as "24h" or "30d".
type Duration time.Duration

// MarshalText implements [encoding.TextMarshaler].
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := duration.Parse(string(text))
	if err != nil {
		return fmt.Errorf("%q must be a duration such as 24h or 30d", text)
	}
	*d = Duration(parsed)
	return nil
}

// New is a key to create.
type New struct {
	Name      string   `json:"name"`                // what the key is for
	Owner     string   `json:"owner"`               // usage is counted per owner
	Plan      string   `json:"plan"`                // the name of a plan
	Quotas    []string `json:"quotas,omitempty"`    // required for a custom plan, refused for any other
	Limits    []string `json:"limits,omitempty"`    // quotas of the key alone, in addition to its plan
	ExpiresIn Duration `json:"expiresIn,omitempty"` // the key is valid for this long; zero: it does not expire
}

// A FieldError is a mistake in one field of a request, which the caller calls by its own
// name, such as --expires-in.
type FieldError struct {
	Field string // as in JSON: name, owner, expiresIn or overlap
	Err   error  // continues a sentence that begins with the field
}

func (e *FieldError) Error() string { return e.Field + " " + e.Err.Error() }

// Unwrap returns Err.
func (e *FieldError) Unwrap() error { return e.Err }

// A PlanError is a plan that does not exist, or does not fit the quotas.
type PlanError struct{ Err error }

func (e *PlanError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *PlanError) Unwrap() error { return e.Err }

// A PlanFunc returns the plan with a name for a key with quotas of its own, or without.
type PlanFunc func(name string, quotas []string) (*ratelimit.Plan, error)

// Check returns a [FieldError], a [PlanError], or for the limits an error that wraps
// [store.ErrInvalid], if the key cannot be created. Without a function it does not check
// the plan.
func (n New) Check(plan PlanFunc) error {
	if plan != nil {
		if _, err := plan(n.Plan, n.Quotas); err != nil {
			return &PlanError{err}
		}
	}
	if err := checkNotNegative("expiresIn", n.ExpiresIn); err != nil {
		return err
	}
	for _, field := range []struct{ name, value string }{{"name", n.Name}, {"owner", n.Owner}} {
		if err := store.CheckText(field.value); err != nil {
			return &FieldError{field.name, err}
		}
	}
	if _, err := (store.NewKey{Limits: n.Limits}).LimitsPlan(); err != nil {
		return explained{strings.TrimPrefix(err.Error(), "sqlkeys: "+store.ErrInvalid.Error()+": "), err}
	}
	return nil
}

// defaultOverlap is the overlap of a rotation that does not name one.
const defaultOverlap = Duration(24 * time.Hour)

// A Replacement says how a key is replaced by a new one.
type Replacement struct {
	// Overlap is how long the old key stays valid, at most until it expires. Nil: 24
	// hours.
	Overlap *Duration `json:"overlap,omitempty"`

	// ExpiresIn is for how long the new key is valid; zero: it does not expire. Nil: it
	// has the lifetime of the old one.
	ExpiresIn *Duration `json:"expiresIn,omitempty"`
}

// Check returns a [FieldError] if a duration is negative.
func (r Replacement) Check() error {
	if r.Overlap != nil {
		if err := checkNotNegative("overlap", *r.Overlap); err != nil {
			return err
		}
	}
	if r.ExpiresIn != nil {
		return checkNotNegative("expiresIn", *r.ExpiresIn)
	}
	return nil
}

func (r Replacement) overlap() time.Duration {
	if r.Overlap == nil {
		return time.Duration(defaultOverlap)
	}
	return time.Duration(*r.Overlap)
}

// expires returns when the new key expires.
func (r Replacement) expires(old store.Key, now time.Time) time.Time {
	switch {
	case r.ExpiresIn != nil && *r.ExpiresIn > 0:
		return now.Add(time.Duration(*r.ExpiresIn))
	case r.ExpiresIn != nil || old.Expires.IsZero():
		return time.Time{}
	default:
		return now.Add(old.Expires.Sub(old.Created))
	}
}

func checkNotNegative(field string, d Duration) error {
	if d < 0 {
		return &FieldError{field, fmt.Errorf("must not be negative, got %v", time.Duration(d))}
	}
	return nil
}
