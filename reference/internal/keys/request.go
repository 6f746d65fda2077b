package keys

import (
	"fmt"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/duration"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

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

// A limitsError is a mistake in the limits of a key. It wraps [store.ErrInvalid], whose
// text says nothing to the caller.
type limitsError struct{ err error }

func (e *limitsError) Error() string {
	return strings.TrimPrefix(e.err.Error(), store.ErrInvalid.Error()+": ")
}

func (e *limitsError) Unwrap() error { return e.err }

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
		return &limitsError{err}
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
