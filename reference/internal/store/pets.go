package store

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// Status is the state of a pet.
type Status string

// The three states of a pet.
const (
	Available Status = "available"
	Pending   Status = "pending"
	Sold      Status = "sold"
)

// Valid reports whether s is one of the three states. The empty Status is not.
func (s Status) Valid() bool {
	return s == Available || s == Pending || s == Sold
}

// A NewPet is a pet that has not been stored yet, as the API reads it from JSON.
type NewPet struct {
	Name       string `json:"name"`       // 1 to MaxText code points of UTF-8, no control characters
	CategoryID int64  `json:"categoryId"` // any value
	Status     Status `json:"status"`     // empty: Available
}

// Validate returns an error that wraps [ErrInvalid] if p breaks a rule of its type.
func (p NewPet) Validate() error {
	if err := checkText("pet name", p.Name); err != nil {
		return err
	}
	if p.Status != "" && !p.Status.Valid() {
		return fmt.Errorf("%w: pet status must be available, pending or sold, got %q", ErrInvalid, p.Status)
	}
	return nil
}

// A Pet is a stored pet, as the API writes it in JSON.
type Pet struct {
	ID         int64  `json:"id"` // from 1; not reused, even after a pet was deleted
	Name       string `json:"name"`
	CategoryID int64  `json:"categoryId"`
	Status     Status `json:"status"`
}

// MaxList is the largest number of pets in one page.
const MaxList = 1000

// A ListQuery asks for one page of pets.
type ListQuery struct {
	Limit  int    // pets in the page, 1 to MaxList
	Status Status // only pets in this state; empty: in any
	After  int64  // only pets with a larger ID; 0: from the first
}

// Validate returns an error that wraps [ErrInvalid] if q breaks a rule of its type.
func (q ListQuery) Validate() error {
	switch {
	case q.Limit < 1 || q.Limit > MaxList:
		return fmt.Errorf("%w: limit must be 1 to %d, got %d", ErrInvalid, MaxList, q.Limit)
	case q.Status != "" && !q.Status.Valid():
		return fmt.Errorf("%w: pet status must be available, pending or sold, got %q", ErrInvalid, q.Status)
	case q.After < 0:
		return fmt.Errorf("%w: after must not be negative, got %d", ErrInvalid, q.After)
	}
	return nil
}

// Pets stores the pets.
type Pets interface {
	// CreatePet stores a pet and gives it an ID. A pet that does not pass
	// Validate is refused with [ErrInvalid].
	CreatePet(ctx context.Context, p NewPet) (Pet, error)

	// CreatePetOnce is CreatePet for a request that a client may send again. The pet and
	// the key are stored together. Within [IdempotencyLifetime] the same key with the same
	// fingerprint creates nothing and returns the first pet, with replayed true; with
	// another fingerprint it is refused with [ErrMismatch]. Of several concurrent calls, one
	// creates the pet, and the others wait for it.
	CreatePetOnce(ctx context.Context, p NewPet, k IdempotencyKey) (pet Pet, replayed bool, err error)

	// Pet returns one pet, or [ErrNotFound].
	Pet(ctx context.Context, id int64) (Pet, error)

	// ListPets returns the first q.Limit pets that q asks for, in order of their
	// IDs, and whether there are more. No pets are an empty slice.
	//
	// A client that continues after the last ID of each page gets every pet that existed
	// when it began exactly once, whatever is written meanwhile. The pet with the ID
	// After need not exist.
	ListPets(ctx context.Context, q ListQuery) (pets []Pet, more bool, err error)
}

// A PetsVersioner is a [Pets] that knows cheaply whether pets may have changed, so that
// a caller can keep what it made of them. It is optional.
type PetsVersioner interface {
	// PetsVersion returns a number that stands for what is stored. Two calls return the
	// same number only if this handle has committed no write between them, and other
	// handles none until 10 milliseconds before the second call. So what was read after the
	// first call is still what is stored, except for writes of other handles in those 10
	// milliseconds. The number may change without a write, and is neither ordered nor
	// stored. It costs far less than a query.
	//
	// If ok is false, the store cannot tell at the moment, and the caller must read.
	PetsVersion() (version uint64, ok bool)
}

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
	return cmp.Or(
		checkText("owner", k.Owner),
		checkText("idempotency key", k.Key),
		checkTime("time of the request", k.At))
}
