package keys

import (
	"time"

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
