package store

import (
	"fmt"
	"time"
)

// An IdempotencyKey names a request that must take effect once, however often the
// client sends it.
type IdempotencyKey struct {
	Owner       string    // the owner of the API key; text as in NewPet.Name
	Key         string    // chosen by the client, for one request of the owner; text as in NewPet.Name
	Fingerprint [32]byte  // of the request, to notice a key that is used for two different ones
	At          time.Time // the time of the request; not zero, as CheckTime has it
}

// IdempotencyLifetime is for how long a request with the same [IdempotencyKey] is the
// same request.
const IdempotencyLifetime = 24 * time.Hour

// Validate returns an error that wraps [ErrInvalid] if k breaks a rule of its type.
func (k IdempotencyKey) Validate() error {
	if err := checkText("owner", k.Owner); err != nil {
		return err
	}
	if err := checkText("idempotency key", k.Key); err != nil {
		return err
	}
	if k.At.IsZero() {
		return fmt.Errorf("%w: time of the request is missing", ErrInvalid)
	}
	return checkTime("time of the request", k.At)
}
