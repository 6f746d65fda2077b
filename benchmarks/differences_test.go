package benchmarks

import (
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// These tests say what the peers do today where this module does otherwise. If
// one of them fails after an update of a peer, docs/BENCHMARKS.md has to change.
//
// Time is that of a bubble (testing/synctest), which begins at midnight UTC on
// 1 January 2000 and moves only where a test sleeps. Sethvargo's limiter reads
// the system's clock past the bubble, and so has tests of its own.

// Ten requests in a minute against 8 a day and 3 a minute: 3 are admitted, and in
// the next minute there should be 5 left of the day, of which the minute admits 3.
// Two middlewares are two decisions: the day was charged for what the minute
// refused.
func TestDeniedRequestsSpendTheOtherQuota(t *testing.T) {
	for peer, want := range map[string][2]int{
		"gatehouse": {3, 3},
		"throttled": {3, 0},
		"httprate":  {3, 0},
		"ulule":     {3, 0},
		"tollbooth": {3, 0},
	} {
		t.Run(peer, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := guard(t, peer, limited{8, dayWindow}, limited{3, minuteWindow})
				first := v.admitted(10)
				time.Sleep(2 * time.Minute) // httprate counts the minute before as well
				if got := [2]int{first, v.admitted(10)}; got != want {
					t.Errorf("admitted in the first minute and later: %v, want %v", got, want)
				}
			})
		})
	}
}

// An admitted request under 5 a day and 60 a minute: 4 are left. Of two
// middlewares each sets the same fields.
func TestFieldsOfTwoQuotas(t *testing.T) {
	for peer, want := range map[string]http.Header{
		"gatehouse": {"X-Ratelimit-Limit": {"5"}, "X-Ratelimit-Remaining": {"4"}, "X-Ratelimit-Reset": {"946771200"}},
		"throttled": {"X-Ratelimit-Limit": {"5", "60"}, "X-Ratelimit-Remaining": {"4", "59"}, "X-Ratelimit-Reset": {"17280", "1"}},
		"httprate":  {"X-Ratelimit-Limit": {"60"}, "X-Ratelimit-Remaining": {"59"}, "X-Ratelimit-Reset": {"946684860"}},
		"ulule":     {"X-Ratelimit-Limit": {"5", "60"}, "X-Ratelimit-Remaining": {"4", "59"}, "X-Ratelimit-Reset": {"946771200", "946684860"}},
		"tollbooth": {
			"Ratelimit-Limit": {"0", "1"}, "Ratelimit-Remaining": {"4", "59"}, "Ratelimit-Reset": {"1", "1"},
			"X-Rate-Limit-Limit": {"0.00", "1.00"}, "X-Rate-Limit-Duration": {"1", "1"},
			"X-Rate-Limit-Request-Remote-Addr": {"192.0.2.1:1234", "192.0.2.1:1234"},
		},
	} {
		t.Run(peer, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := guard(t, peer, limited{5, dayWindow}, limited{60, minuteWindow})
				if diff := cmp.Diff(want, v.get().Header); diff != "" {
					t.Errorf("header fields (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// One request a day was made at half a second past midnight. At 23:00 the next
// one is told when to come back, in Retry-After and in Reset.
func TestWhenToComeBack(t *testing.T) {
	type answer struct {
		RetryAfter, Reset string
		// What becomes of a request at the time that Retry-After says, or Reset
		// if there is none: "" if neither is a time.
		Then string
	}
	seconds := func(s string) time.Duration { n, _ := strconv.Atoi(s); return time.Duration(n) * time.Second }
	until := func(s string) time.Duration { return time.Until(time.Unix(0, 0).Add(seconds(s))) }
	for peer, c := range map[string]struct {
		want answer
		wait func(a answer) time.Duration
	}{
		"gatehouse": {answer{"3600", "946771200", "admitted"}, func(a answer) time.Duration { return seconds(a.RetryAfter) }},
		"throttled": {answer{"3601", "3601", "admitted"}, func(a answer) time.Duration { return seconds(a.RetryAfter) }},
		// The whole window, whatever is left of it; and at Reset the request of
		// the day before still counts in full.
		"httprate": {answer{"86400", "946771200", "denied"}, func(a answer) time.Duration { return until(a.Reset) }},
		// Reset is rounded down, and there is no Retry-After.
		"ulule": {answer{"", "946771200", "denied"}, func(a answer) time.Duration { return until(a.Reset) }},
		// Reset is a constant.
		"tollbooth": {answer{"", "1", "denied"}, func(a answer) time.Duration { return seconds(a.Reset) }},
	} {
		t.Run(peer, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if peer != "httprate" { // whose windows begin with the limiter
					time.Sleep(500 * time.Millisecond)
				}
				v := guard(t, peer, limited{1, dayWindow})
				v.admitted(1)
				time.Sleep(time.Until(time.Date(2000, 1, 1, 23, 0, 0, 0, time.UTC)))
				r := v.get()
				got := answer{RetryAfter: r.Header.Get("Retry-After"), Reset: r.Header.Get("X-RateLimit-Reset") + r.Header.Get("RateLimit-Reset"), Then: "denied"}
				time.Sleep(c.wait(got))
				if v.admitted(1) == 1 {
					got.Then = "admitted"
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("at 23:00 (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// What a minute may see at worst of a quota of 1000 a minute. Neither kind of
// limit keeps to 1000: GCRA fills up again while it is used, and fixed windows
// have a boundary.
func TestWorstMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := guard(t, "throttled", limited{1000, minuteWindow})
		admitted := v.admitted(2000)
		for range 999 {
			time.Sleep(minuteWindow / 1000)
			admitted += v.admitted(1)
		}
		if admitted != 1999 {
			t.Errorf("throttled admitted %d within a minute, want 1999", admitted)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		v := guard(t, "gatehouse", limited{1000, minuteWindow})
		time.Sleep(minuteWindow - time.Second)
		admitted := v.admitted(2000)
		time.Sleep(time.Second)
		if admitted += v.admitted(2000); admitted != 2000 {
			t.Errorf("gatehouse admitted %d around the end of a minute, want 2000", admitted)
		}
	})
}
