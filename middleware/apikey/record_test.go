package apikey_test

import (
	"errors"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
)

// now is an instant in the past.
var now = time.Date(2020, 2, 20, 12, 0, 0, 0, time.UTC)

func TestRecordValid(t *testing.T) {
	tests := []struct {
		name   string
		record record
		want   error
	}{
		{"for ever", record{}, nil},
		{"before its expiry", record{Expires: now.Add(1)}, nil},
		{"at its expiry", record{Expires: now}, apikey.ErrExpired},
		{"after its expiry", record{Expires: now.Add(-1)}, apikey.ErrExpired},
		{"before its revocation", record{Revoked: now.Add(1)}, nil},
		{"at its revocation", record{Revoked: now}, apikey.ErrRevoked},
		{"revoked and expired", record{Revoked: now, Expires: now}, apikey.ErrRevoked},
		{"expired, revoked later", record{Revoked: now.Add(1), Expires: now}, apikey.ErrExpired},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.record.Valid(now); got != tt.want {
				t.Errorf("Valid = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestReasonsWrapErrInvalid(t *testing.T) {
	for _, err := range []error{apikey.ErrMalformed, apikey.ErrUnknown, apikey.ErrExpired, apikey.ErrRevoked} {
		if !errors.Is(err, bearer.ErrInvalid) {
			t.Errorf("%q does not wrap bearer.ErrInvalid", err)
		}
	}
}

func TestExpireAfter(t *testing.T) {
	const day = 24 * time.Hour
	tests := []struct {
		name          string
		expires, want time.Time
		overlap       time.Duration
	}{
		{"a key without an end", time.Time{}, now.Add(day), day},
		{"a key that lives longer", now.Add(30 * day), now.Add(day), day},
		{"a key that ends sooner", now.Add(time.Hour), now.Add(time.Hour), day},
		{"a key that ends at the same instant", now.Add(day), now.Add(day), day},
		{"a key that has ended", now.Add(-time.Hour), now.Add(-time.Hour), day},
		{"no overlap", time.Time{}, now, 0},
		{"negative overlap", time.Time{}, now, -day},
		{"negative overlap of a key that ends", now.Add(day), now, -day},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			old := record{Principal: ann, Expires: tt.expires, Revoked: now.Add(day)}
			got := old.ExpireAfter(now, tt.overlap)
			if !got.Expires.Equal(tt.want) {
				t.Errorf("expires %v, want %v", got.Expires, tt.want)
			}
			if got.Expires = old.Expires; got != old {
				t.Errorf("more than the expiry has changed: %v, want %v", got, old)
			}
		})
	}
}
