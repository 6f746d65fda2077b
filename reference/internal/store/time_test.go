package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// JSON has no other years, and PostgreSQL would store some of them as another time.
func TestTimesAreInTheYears1To9999(t *testing.T) {
	first := time.Date(1, time.January, 2, 0, 0, 0, 0, time.UTC)
	last := time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC)
	for at, want := range map[time.Time]bool{
		first: true, noon: true, last: true,
		first.AddDate(-1, 0, 0):                                 false,
		last.AddDate(0, 0, 1):                                   false,
		time.UnixMicro(-1 << 63).UTC():                          false,
		time.UnixMicro(1<<63 - 1).UTC():                         false,
		last.In(time.FixedZone("", -3600)):                      true,
		last.Add(24*time.Hour - 1).In(time.FixedZone("", 3600)): true, // the year 10000 there
	} {
		key := store.NewKey{Digest: store.Digest{1}, LastFour: "abcd", Name: "n", Owner: "o", Plan: "p", Created: at}
		expiring := key
		expiring.Created, expiring.Expires = first.Add(-1), at
		if !want && at.Before(first) {
			expiring.Created = at.Add(-1)
		}
		for name, err := range map[string]error{
			"a key created then":         key.Validate(),
			"a key that expires then":    expiring.Validate(),
			"an audit entry of then":     store.AuditEntry{At: at, Actor: "a", Action: "b", Target: "c"}.Validate(),
			"daily use of then":          store.DailyUse{Owner: "o", Day: store.Day(at)}.Validate(),
			"deprecated use of then":     store.DeprecatedUse{Operation: "getPet", Owner: "o", Count: 1, Last: at}.Validate(),
			"an idempotency key of then": store.IdempotencyKey{Owner: "o", Key: "k", At: at}.Validate(),
		} {
			if got := err == nil; got != want || !got && !errors.Is(err, store.ErrInvalid) {
				t.Errorf("%v: %s is valid: %v (%v), want %v", at, name, got, err, want)
			}
		}
	}
}
