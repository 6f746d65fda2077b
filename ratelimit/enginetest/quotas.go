package enginetest

import (
	"errors"
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

func testCost(e *engineTest) {
	p := plan(ratelimit.PerDay(10))
	e.want("7 of 10", e.takeN("a", p, 7), allowed, 3)
	e.want("4 do not fit into 3", e.takeN("a", p, 4), limited, 3)
	e.want("3 do", e.takeN("a", p, 3), allowed, 0)
}

func testSoft(e *engineTest) {
	const limit = 100
	hard := ratelimit.Quota{Limit: limit, Window: fixedwindow.MaxLength} // it does not end in the middle
	soft := plan(hard.Soft())
	if _, err := e.engine.Take(ctx, "refused", soft, 1); errors.Is(err, ratelimit.ErrInvalid) && e.gaps.RollingWindows {
		e.Skip("skipped: the engine has no windows, and refuses soft quotas")
	}
	want := func(step string, d ratelimit.Decision, i int, used int64) {
		e.Helper()
		if got := d.Used(i); got != used {
			e.Fatalf("%s: %d units of %v are used, want %d", step, got, d.Plan.Quota(i), used)
		}
	}
	var d ratelimit.Decision
	for used := range int64(150) {
		d = e.take(soft)
		e.want("up to the limit and beyond it", d, allowed, max(limit-used-1, 0))
		want("up to the limit and beyond it", d, 0, used+1)
	}
	d = e.takeN("a", soft, 2*limit)
	e.want("a cost over the limit", d, allowed, 0)
	want("a cost over the limit", d, 0, 350)
	if _, ok := e.engine.Limiter.(engine.Adjuster); ok {
		for _, units := range []int64{1000, 0} {
			e.adjust("a", &d, units, "")
			d.Cost = units
			want("settled and given back", e.takeN("a", soft, 1), 0, 151+units+max(1-units, 0))
		}
	}
	if !e.gaps.OneQuota {
		both := plan(ratelimit.Quota{Limit: 3, Window: fixedwindow.MaxLength - time.Hour}, hard.Soft())
		for range 3 {
			e.takeN("b", both, 1)
		}
		e.takeN("b", soft, 2*limit)
		d = e.takeN("b", both, 1)
		e.want("beside a hard quota that is used up", d, limited, 0)
		want("beside a hard quota that is used up", d, 1, 203)
		if d.Limit() != 3 {
			e.Errorf("the limit of %d refuses, want the hard one of 3", d.Limit())
		}
	}
	if !e.gaps.UsagePerPlan {
		e.want("once it is hard", e.take(plan(hard)), limited, 0)
	}
}
