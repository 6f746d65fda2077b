package store

import (
	"context"
	"fmt"
	"time"
)

// A DeprecatedUse counts how often an owner used a deprecated operation, so that an
// operator knows which owners to contact.
type DeprecatedUse struct {
	Operation string    // the operation's ID in the OpenAPI document; text as in NewPet.Name
	Owner     string    // the owner of the keys; text as in NewPet.Name
	Count     int64     // requests, at least 1
	Last      time.Time // the latest of them; not zero, as CheckTime has it
	Recent    int64     // requests since the day that ListDeprecatedUse was asked for; ignored by AddDeprecatedUse
}

// Validate returns an error that wraps [ErrInvalid] if u breaks a rule of its type.
func (u DeprecatedUse) Validate() error {
	if err := checkText("operation", u.Operation); err != nil {
		return err
	}
	if err := checkText("owner", u.Owner); err != nil {
		return err
	}
	switch {
	case u.Count < 1:
		return fmt.Errorf("%w: count of deprecated use must be at least 1, got %d", ErrInvalid, u.Count)
	case u.Last.IsZero():
		return fmt.Errorf("%w: time of deprecated use is missing", ErrInvalid)
	}
	return checkTime("time of deprecated use", u.Last)
}

// DeprecatedUses stores the use of deprecated operations by owner.
type DeprecatedUses interface {
	// AddDeprecatedUse adds the counts to the stored ones and keeps the later of the
	// two times. It adds all counts or none. The requests count for the day of the
	// latest of them.
	AddDeprecatedUse(ctx context.Context, uses ...DeprecatedUse) error

	// ListDeprecatedUse returns the sums, by operation, and within one by count,
	// the largest first, then by owner. Recent has the requests from the day that since
	// is in, of the last [KeepDays] days.
	ListDeprecatedUse(ctx context.Context, since time.Time) ([]DeprecatedUse, error)
}
