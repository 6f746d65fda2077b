package store

import (
	"fmt"
	"time"
)

// CheckTime returns an error if t is not in the years 1 to 9999 of UTC: RFC 3339, in which
// clients read times, has no others, and a database can silently change them. The error
// continues a sentence that begins with what the time is.
func CheckTime(t time.Time) error {
	if year := t.UTC().Year(); year < 1 || year > 9999 {
		return fmt.Errorf("must be in the years 1 to 9999, got the year %d", year)
	}
	return nil
}

func checkTime(what string, t time.Time) error {
	if err := CheckTime(t); err != nil {
		return fmt.Errorf("%w: %s %w", ErrInvalid, what, err)
	}
	return nil
}
