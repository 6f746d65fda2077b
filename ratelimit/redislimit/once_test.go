package redislimit_test

import (
	"errors"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

func TestChargeOnce(t *testing.T) {
	m, c := mini(t)
	now := time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC)
	m.SetTime(now)
	l := newLimiter(t, c)
	const limit = 1000
	charge := func(mark, subject string, want int64) {
		t.Helper()
		err := l.ChargeOnce(ctx, mark, subject, lasting(limit), [ratelimit.MaxQuotas]int64{7}, now)
		if err != nil {
			t.Fatal(err)
		}
		if n := used(t, l, subject, limit); n != want {
			t.Errorf("%s has used %d after a charge marked %s, want %d", subject, n, mark, want)
		}
	}
	charge("first", "a", 7)
	charge("first", "a", 7)
	charge("second", "a", 14)
	charge("first", "b", 7)
	m.FastForward(59 * time.Second)
	charge("first", "a", 14)
	err := l.ChargeOnce(ctx, "", "a", lasting(limit), [ratelimit.MaxQuotas]int64{7}, now)
	if !errors.Is(err, ratelimit.ErrInvalid) {
		t.Errorf("a charge without a mark: got error %v, want one that wraps ErrInvalid", err)
	}
}
