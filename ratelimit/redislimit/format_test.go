package redislimit_test

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// What is stored is read by processes of other versions while they are upgraded one after
// the other. So if this test fails, the change needs keys of other names, under the same
// prefix: then two versions count apart until the upgrade is done. With the names of
// today, each version would find the values of the other damaged.
func TestFormat(t *testing.T) {
	m, c := mini(t)
	now := time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC)
	m.SetTime(now.Add(-2 * time.Minute))
	l, err := redislimit.New(c, redislimit.Options{Prefix: "test"})
	must(t, err)
	penalty := ratelimit.Penalty{Strikes: 1, Ban: time.Minute, Growth: 2, Max: time.Hour, Forgive: 24 * time.Hour}
	plan := ratelimit.MustPlan("p", penalty, ratelimit.PerMinute(2), ratelimit.PerDay(1000))
	take := func(subject string, times int) {
		t.Helper()
		for range times {
			_, err := l.Take(ctx, subject, plan, 1)
			must(t, err)
		}
	}
	ban := func(subject string) {
		t.Helper()
		must(t, l.Ban(ctx, subject, time.Minute, "spam"))
	}
	take("owner:freed", 4)
	ban("owner:freed")
	m.SetTime(now)
	take("owner:freed", 1)
	ban("owner:by hand")
	take("owner:charged", 1)
	take("owner:limited", 3)
	take("owner:banned", 4)
	take("owner:"+strings.Repeat("long", 32), 1)
	must(t, addUsage(l, "id", "owner:merged", plan, [4]int64{1, 300}, now))
	must(t, addUsage(l, "", "owner:wide", plan, [4]int64{7, 5<<32 + 9}, now))
	got := map[string]string{}
	for _, key := range m.Keys() {
		if scores, err := m.SortedSet(key); err == nil {
			for name, score := range scores {
				got[key] += fmt.Sprintf("%s %.0f", name, score)
			}
		} else if value, err := m.Get(key); err == nil {
			got[key] = hex.EncodeToString([]byte(value))
		}
	}
	const heads = "0000003c69a42a7c" + "0001518069a4d300" // the minute and the day
	want := map[string]string{
		"test{229}:owner:charged": heads + "00000001" + "00000001",
		// Limited since 12:00:30, one strike, which decays from then on.
		"test{37c}:owner:limited": heads + "00000002" + "00000002" + "019ca9457f30" + "0001" + "00" + "00000000" + "69a42a5e" + "69a4d300",
		// Limited since then, banned for the first time, until 12:01:30, for a minute.
		"test{25b}:owner:banned": heads + "00000002" + "00000002" + "019ca9457f30" + "0000" + "01" + "69a42a9a" + "0000003c" + "69a57c1a",
		"test{25b}":              "owner:banned 1772366490",
		// Banned by hand since 12:00:30, for a minute, with the reason "spam".
		"test{0ec}:owner:by hand": "ff04" + "7370616d" + "000000000000" + "0000" + "00" + "69a42a9a" + "8000003c" + "69a42a9a",
		"test{0ec}":               "owner:by hand 1772366490",
		// Banned at 11:58:30, the second time by hand, and admitted after the ban, which leaves no reason.
		"test{279}:owner:freed": heads + "00000001" + "00000003" + "019ca943aa70" + "0000" + "01" + "69a42a22" + "00000000" + "69a57ba2",
		"test{279}":             "owner:freed 1772366370",
		// More is used of the day than four bytes hold.
		"test{206}:owner:wide": heads + "c0015180" + "69a4d300" + "00000007" + "00000009" + "00000005",
		// A long name, and usage that was counted elsewhere, with a mark for each window.
		"test{154}#4f09c297640b21097a0fdf5a35d3de5379a50fe1312ebf75e1d2989f9c7b61dc": heads + "00000001" + "00000001",
		"test{165}:owner:merged":                     heads + "00000001" + "0000012c",
		"test{165}!66c6c03b70cc21e88f92309b6360072a": "",
		"test{165}!1015153e0907dd13009c1f8b879a2adb": "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is stored (-want +got):\n%s", diff)
	}
}

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
	if keys := m.Keys(); len(keys) > 0 {
		t.Errorf("a full bucket leaves %q, want nothing", keys)
	}
}
