package postgres

import (
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// toMicroseconds returns a time with the precision that timestamptz has, in UTC.
func toMicroseconds(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// orNull returns nil, which is stored as NULL, for the zero time.
func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// orZero is the inverse of orNull.
func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// dayOf returns the UTC day that t is in.
func dayOf(t time.Time) pgtype.Date { return pgtype.Date{Time: store.Day(t), Valid: true} }
