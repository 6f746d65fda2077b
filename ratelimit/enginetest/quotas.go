package enginetest

import (
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
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

func testCost(e *engineTest) {
	p := plan(ratelimit.PerDay(10))
	e.want("7 of 10", e.takeN("a", p, 7), allowed, 3)
	e.want("4 do not fit into 3", e.takeN("a", p, 4), limited, 3)
	e.want("3 do", e.takeN("a", p, 3), allowed, 0)
}
