package redislimit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// The time at which a bucket is full stands where another window has its end and usage,
// and a full bucket leaves nothing.
func TestSmoothFormat(t *testing.T) {
	m, c := mini(t)
	start := time.Date(2026, time.March, 1, 12, 0, 30, 250_000_000, time.UTC)
	m.SetTime(start)
	l := newLimiter(t, c)
	plan := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerMinute(60).Smooth(10))
	charged, err := l.Take(ctx, "a", plan, 3)
	must(t, err)
	end := uint32(start.Unix()) + 4 // 33.25 seconds
	want := string([]byte{0x80, 0, 0, 60, byte(end >> 24), byte(end >> 16), byte(end >> 8), byte(end), 0xc0, 0, 0, 0})
	if got, err := c.Get(ctx, m.Keys()[0]).Result(); err != nil || got != want {
		t.Errorf("got %x, %v, want %x", got, err, want)
	}
	m.SetTime(start.Add(3 * time.Second))
	must(t, l.Adjust(ctx, "a", &charged, 2, ""))
	if keys := m.Keys(); len(keys) != 1 || !strings.Contains(keys[0], "!") {
		t.Errorf("a full bucket leaves %q, want a note", keys)
	}
}
