package store

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// A DailyUse counts the requests of an owner on one day.
type DailyUse struct {
	Owner   string    // the owner of the keys; text as in NewPet.Name
	Day     time.Time // 00:00 UTC of the day, as CheckTime has it
	Allowed int64     // requests that were admitted, not negative
	Denied  int64     // requests that were limited or banned, not negative
}

// KeepDays is for how many days the counts of a day are kept.
const KeepDays = 90

// Day returns the beginning of the UTC day that t is in.
func Day(t time.Time) time.Time {
	y, m, d := t.UTC().Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

// Validate returns an error that wraps [ErrInvalid] if u breaks a rule of its type.
func (u DailyUse) Validate() error {
	switch {
	case u.Day.IsZero() || !u.Day.Equal(Day(u.Day)):
		return fmt.Errorf("%w: day of daily use must be 00:00 UTC, got %v", ErrInvalid, u.Day)
	case u.Allowed < 0 || u.Denied < 0:
		return fmt.Errorf("%w: counts of daily use must not be negative, got %d and %d", ErrInvalid, u.Allowed, u.Denied)
	}
	return cmp.Or(checkText("owner", u.Owner), checkTime("day of daily use", u.Day))
}

// DailyUses stores the requests of each owner by day.
type DailyUses interface {
	// AddDailyUse adds the counts to the stored ones, all or none of them.
	AddDailyUse(ctx context.Context, uses ...DailyUse) error

	// ListDailyUse returns the days of an owner on which it sent requests, from the
	// day that since is in, the oldest first. No days are an empty slice.
	ListDailyUse(ctx context.Context, owner string, since time.Time) ([]DailyUse, error)

	// PruneDailyUse removes the counts of the days before the one that an instant is
	// in, of [DailyUse] and of [DeprecatedUse.Recent].
	PruneDailyUse(ctx context.Context, before time.Time) error
}

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
	if u.Count < 1 {
		return fmt.Errorf("%w: count of deprecated use must be at least 1, got %d", ErrInvalid, u.Count)
	}
	return cmp.Or(
		checkText("operation", u.Operation), checkText("owner", u.Owner), checkTime("time of deprecated use", u.Last))
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
