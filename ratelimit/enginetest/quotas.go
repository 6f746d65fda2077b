package enginetest

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

const (
	allowed = ratelimit.Allowed
	limited = ratelimit.Limited
	banned  = ratelimit.Banned
)

func testExactLimit(e *engineTest) {
	const limit = 100
	p := plan(ratelimit.PerDay(limit))
	for used := range int64(limit) {
		e.want("within the limit", e.take(p), allowed, limit-used-1)
	}
	for range 3 {
		e.want("over the limit", e.take(p), limited, 0)
	}
}

func testSubjectsApart(e *engineTest) {
	p := plan(ratelimit.PerDay(1))
	names := []string{"a", "b", " ", "A", "a ", "a\x00", "{a}", "a:b", "ключ", string(make([]byte, 300))}
	for _, name := range names {
		e.want(strconv.Quote(name)+" has a quota of its own", e.takeN(name, p, 1), allowed, 0)
	}
	for _, name := range names {
		e.want(strconv.Quote(name)+" has used its quota", e.takeN(name, p, 1), limited, 0)
	}
}

func testConcurrent(e *engineTest) {
	const callers, each, limit = 16, 50, 333
	longest := ratelimit.Quota{Limit: limit, Window: fixedwindow.MaxLength} // no unit comes back meanwhile
	fixed := longest
	if e.engine.Set != nil { // no day ends meanwhile
		fixed = ratelimit.PerDay(limit)
	}
	for _, q := range []ratelimit.Quota{fixed, longest.Smooth(limit)} {
		if q.Burst() > 0 && e.gaps.NoSmooth {
			continue
		}
		var admitted atomic.Int64
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				for range each {
					if d, err := e.engine.Take(ctx, "a", plan(q), 1); err != nil {
						e.Error(err)
					} else if d.Allowed() {
						admitted.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if got := admitted.Load(); got != limit {
			e.Errorf("of %d concurrent requests under %v, %d were admitted, want the limit", callers*each, q, got)
		}
	}
}

func testAllOrNone(e *engineTest) {
	p := plan(ratelimit.PerHour(3), ratelimit.PerDay(8))
	for range 3 {
		e.take(p)
	}
	for range 5 {
		e.want("the hour is used up", e.take(p), limited, 0)
	}
	if d := e.take(p); d.States[1].Remaining != 5 {
		e.Errorf("after 3 admitted and 6 denied requests %d of the day's 8 units remain, want 5", d.States[1].Remaining)
	}
}

func testCost(e *engineTest) {
	p := plan(ratelimit.PerDay(10))
	e.want("7 of 10", e.takeN("a", p, 7), allowed, 3)
	e.want("4 do not fit into 3", e.takeN("a", p, 4), limited, 3)
	e.want("3 do", e.takeN("a", p, 3), allowed, 0)
}

func testApplicable(e *engineTest) {
	p := plan(ratelimit.PerMinute(5), ratelimit.PerDay(6))
	minute := e.now.Truncate(time.Minute).Add(time.Minute).Unix()
	day := e.now.Truncate(24 * time.Hour).Add(24 * time.Hour).Unix()
	expect := func(promise string, d ratelimit.Decision, limit, reset int64) {
		e.Helper()
		if d.Limit() != limit || d.Reset() != reset {
			e.Errorf("%s: got limit %d and reset %d, want %d and %d", promise, d.Limit(), d.Reset(), limit, reset)
		}
	}
	expect("the minute has less left", e.take(p), 5, minute)
	for range 4 {
		e.take(p)
	}
	d := e.take(p)
	expect("the minute refuses", d, 5, minute)
	e.advance(30 * time.Second)
	expect("the day has less left", e.take(p), 6, day)
	expect("the day refuses", e.take(p), 6, day)

	tie := plan(ratelimit.PerMinute(2), ratelimit.PerDay(2))
	expect("on a tie the later reset is shown", e.takeN("tie", tie, 1), 2, day)
	e.takeN("tie", tie, 1)
	expect("of two that refuse the later reset is shown", e.takeN("tie", tie, 1), 2, day)
}

func testFourQuotas(e *engineTest) {
	p := plan(ratelimit.Quota{Limit: 9, Window: 2 * time.Hour}, ratelimit.PerDay(4), ratelimit.PerHour(10),
		ratelimit.Quota{Limit: 20, Window: 48 * time.Hour})
	d := e.take(p)
	for i := range engine.Of(p).Len() {
		if got, want := d.States[i].Remaining, engine.Of(p).Quota(i).Limit-1; got != want {
			e.Errorf("%v: %d remaining after the first, want %d", engine.Of(p).Quota(i), got, want)
		}
	}
	for range 3 {
		e.take(p)
	}
	e.want("the smallest of four refuses", e.take(p), limited, 0)
}
