package store

import (
	"context"
	"fmt"
	"time"
)

// A DeprecatedUse counts how often an owner used an operation that is on its
// way out, so that an operator knows whom to write to.
type DeprecatedUse struct {
	Operation string    // the operation's ID in the OpenAPI document; text as in NewPet.Name
	Owner     string    // the owner of the keys; text as in NewPet.Name
	Count     int64     // requests, at least 1
	Last      time.Time // the latest of them; not zero
}

// Validate reports what is wrong with u. Its errors wrap [ErrInvalid].
func (u DeprecatedUse) Validate() error {
	if err := checkText("operation", u.Operation); err != nil {
		return err
	}
	if err := checkText("owner", u.Owner); err != nil {
		return err
	}
	switch {
	case u.Count < 1:
		return fmt.Errorf("%w: count %d of deprecated use is less than 1", ErrInvalid, u.Count)
	case u.Last.IsZero():
		return fmt.Errorf("%w: time of deprecated use is missing", ErrInvalid)
	}
	return nil
}

// DeprecatedUses keeps the use of deprecated operations by owner.
type DeprecatedUses interface {
	// AddDeprecatedUse adds the counts to those that are stored, and keeps the
	// later of the two times; all of them, or none.
	AddDeprecatedUse(ctx context.Context, uses ...DeprecatedUse) error

	// ListDeprecatedUse returns the sums, by operation, and within one by count,
	// the largest first, then by owner.
	ListDeprecatedUse(ctx context.Context) ([]DeprecatedUse, error)
}
