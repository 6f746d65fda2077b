package failover_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// hold takes five units of a subject, held under its name.
func (r *rig) hold(subject string, plan *ratelimit.Plan) ratelimit.Decision {
	r.Helper()
	d, err := r.Hold(subject, time.Minute).Take(ctx, subject, plan, 5)
	if err != nil || !d.Allowed() {
		r.Fatalf("a held take of %q: %v, %v", subject, d.Outcome, err)
	}
	return d
}

// settle settles what hold took.
func (r *rig) settle(subject string, d *ratelimit.Decision, units int64) {
	r.Helper()
	must(r, r.Adjust(ctx, subject, d, units, subject))
}

// Whatever happens between a held take and its settlement, the primary counts what the request
// costs in all. If the process dies before, it counts nothing. TestHistoriesThroughOutages has
// costs that differ, here are the cases at the edge.
func TestHold(t *testing.T) {
	for _, test := range []struct {
		name string
		want string // what the primary has counted of a day in the end
		run  func(r *rig)
	}{
		{"settled at what it was charged", "5", func(r *rig) {
			d := r.hold("a", daily)
			r.settle("a", &d, 5)
			r.shared.endHolds(r)
		}},
		{"the process dies", "0", func(r *rig) {
			r.hold("a", daily)
			r.shared.endHolds(r)
		}},
		{"the process dies, and the primary failed when it was charged", "0", func(r *rig) {
			r.lose()
			r.hold("a", daily)
			r.shared.set(nil)
			time.Sleep(time.Minute)
		}},
		{"the answer was lost, and the request is settled at what it was charged", "5", func(r *rig) {
			r.shared.lost = func() bool { return true }
			d := r.hold("a", daily)
			r.settle("a", &d, 5)
			r.shared.endHolds(r)
		}},
		{"an outage begins, and lasts longer than the timeout", "3", func(r *rig) {
			d := r.hold("a", daily)
			r.lose()
			r.settle("a", &d, 3)
			time.Sleep(time.Hour)
			r.shared.endHolds(r)
		}},
		{"an outage begins, and the request is settled at what it was charged", "5", func(r *rig) {
			d := r.hold("a", daily)
			r.lose()
			r.settle("a", &d, 5)
			r.shared.endHolds(r)
		}},
		{"an outage begins that no request has noticed", "5", func(r *rig) {
			d := r.hold("a", daily)
			r.shared.set(down)
			r.settle("a", &d, 5)
			r.shared.set(nil)
			time.Sleep(time.Minute)
			r.shared.endHolds(r)
		}},
		{"an outage ends, and the request costs nothing", "0", func(r *rig) {
			r.lose()
			d := r.hold("a", daily)
			r.regain()
			r.settle("a", &d, 0)
		}},
		{"the day ends in the outage", "0", func(r *rig) {
			r.lose()
			d := r.hold("a", daily)
			time.Sleep(12 * time.Hour)
			r.settle("a", &d, 7)
		}},
		{"the primary loses its data", "7", func(r *rig) {
			d := r.hold("a", daily)
			r.shared.endHolds(r)
			must(r, r.shared.engine.Reset(ctx, "a"))
			r.settle("a", &d, 7)
		}},
		{"the subject is reset in the outage that it was charged in", "2", func(r *rig) {
			r.lose()
			d := r.hold("a", daily)
			if err := r.Reset(ctx, "a"); !errors.Is(err, failover.ErrLocalOnly) {
				r.Error(err)
			}
			r.settle("a", &d, 7) // what is added
		}},
		{"the subject is reset in an outage that began after it was charged", "7", func(r *rig) {
			d := r.hold("a", daily)
			r.lose()
			if err := r.Reset(ctx, "a"); !errors.Is(err, failover.ErrLocalOnly) {
				r.Error(err)
			}
			r.settle("a", &d, 7)
			r.shared.endHolds(r)
		}},
		{"another subject is reset in the outage", "7", func(r *rig) {
			r.lose()
			d := r.hold("a", daily)
			if err := r.Reset(ctx, "b"); !errors.Is(err, failover.ErrLocalOnly) {
				r.Error(err)
			}
			r.settle("a", &d, 7)
		}},
		{"a group in an outage", "7", func(r *rig) {
			r.lose()
			charges := []ratelimit.Charge{{Subject: "b", Plan: daily, Cost: 5}, {Subject: "a", Plan: daily, Cost: 5}}
			var d [2]ratelimit.Decision
			must(r, r.Hold("id", time.Minute).(engine.MultiTaker).TakeAll(ctx, charges, d[:]))
			must(r, r.Adjust(ctx, "a", &d[1], 7, "id"))
		}},
		{"a group before it", "7", func(r *rig) {
			charges := []ratelimit.Charge{{Subject: "b", Plan: daily, Cost: 5}, {Subject: "a", Plan: daily, Cost: 5}}
			var d [2]ratelimit.Decision
			must(r, r.Hold("id", time.Minute).(engine.MultiTaker).TakeAll(ctx, charges, d[:]))
			r.lose()
			must(r, r.Adjust(ctx, "a", &d[1], 7, "id"))
			r.shared.endHolds(r)
		}},
		{"settled after Close", "7", func(r *rig) {
			r.shared.set(down)
			d := r.hold("a", daily)
			r.shared.set(nil)
			must(r, r.Close())
			r.settle("a", &d, 7)
		}},
		{"a call after its context has ended, and again", "5", func(r *rig) {
			d := r.hold("a", daily)
			ended, cancel := context.WithCancel(ctx)
			cancel()
			if err := r.Adjust(ended, "a", &d, 5, "a"); !errors.Is(err, context.Canceled) {
				r.Errorf("got error %v, want that of the context", err)
			}
			r.lose()
			r.settle("a", &d, 5)
			r.shared.endHolds(r)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			run(t, withLocal, failover.Options{}, func(r *rig) {
				test.run(r)
				r.shared.lost = nil
				r.regain()
				r.wantUsed("at the primary", r.shared.engine, "a", daily, test.want+"/24h0m0s")
			})
		})
	}
}

// What is held in an outage is counted here at once, and is not in the journal. When it is settled
// and the journal is full, it is lost like other requests.
func TestHoldInAnOutage(t *testing.T) {
	run(t, withLocal, failover.Options{JournalSize: 1, OnChange: func(error) {}}, func(r *rig) {
		r.lose() // with another subject
		d := r.hold("a", daily)
		r.wantUsed("held", r.local, "a", daily, "5/24h0m0s")
		if s := r.Stats(); s.Pending != 1 || s.Lost != 0 {
			r.Errorf("%d in the journal, %d lost, want the other subject", s.Pending, s.Lost)
		}
		free := r.hold("b", daily)
		if r.settle("b", &free, 0); r.Stats().Lost != 0 {
			r.Error("a request that costs nothing is lost")
		}
		r.settle("a", &d, 7)
		r.wantUsed("settled", r.local, "a", daily, "7/24h0m0s")
		if s := r.Stats(); s.Lost != 1 {
			r.Errorf("%d lost, want the request", s.Lost)
		}
	})
}

// What is held in an outage is charged to the primary in one sum, as other requests are.
func TestHoldsAreMergedTogether(t *testing.T) {
	remembering(t, failover.Options{OnChange: func(error) {}}, first(0), func(r *rig, o *once) {
		r.lose()
		for range 10 {
			d := r.hold("a", daily)
			r.settle("a", &d, 3)
		}
		r.regain()
		r.wantUsed("at the primary", r.shared.engine, "a", daily, "30/24h0m0s")
		if o.n >= 10 { // there are also calls about the subject that noticed the outage
			r.Errorf("the primary was called %d times, want one call for all", o.n)
		}
	})
}

// A call that gives back in an outage is not in doubt until the primary was asked, so that a hold
// is settled also after the time for which ids are remembered.
func TestHoldThroughALongOutage(t *testing.T) {
	remembering(t, failover.Options{OnChange: func(error) {}}, first(0), func(r *rig, o *once) {
		d := r.hold("a", daily)
		r.lose()
		r.settle("a", &d, 3)
		time.Sleep(time.Hour)
		r.regain()
		r.wantUsed("at the primary", r.shared.engine, "a", daily, "3/24h0m0s")
	})
}

// The primary is not called about what changes nothing and ends no hold.
func TestAdjustOfNothing(t *testing.T) {
	run(t, withLocal, failover.Options{}, func(r *rig) {
		allowed, denied := r.takeN("a", daily, 600), r.takeN("a", daily, 500)
		calls := r.shared.calls.Load()
		must(r, r.Adjust(ctx, "a", &allowed, 600, ""))
		must(r, r.Adjust(ctx, "a", &denied, 0, "id"))
		if n := r.shared.calls.Load() - calls; n != 0 {
			r.Errorf("the primary was called %d times, want 0", n)
		}
	})
}

// The local engine holds what it is charged, so that its file does not have it.
func TestHoldOfAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "usage")
	restart := func() (*memory.Limiter, func() error) {
		l, _, closeFile, err := memory.Open(file, memory.Options{})
		must(t, err)
		return l, closeFile
	}
	synctest.Test(t, func(t *testing.T) {
		local, closeFile := restart()
		primary := newShared(t)
		primary.set(down)
		l, err := failover.New(primary, failover.Options{Local: local, OnChange: func(error) {}})
		must(t, err)
		defer l.Close()
		var d [2]ratelimit.Decision
		for i, id := range []string{"1", "2"} {
			d[i], err = l.Hold(id, time.Minute).Take(ctx, "a", daily, 5)
			must(t, err)
		}
		must(t, l.Adjust(ctx, "a", &d[1], 7, "2"))
		must(t, closeFile())
		local, closeFile = restart()
		defer closeFile()
		if got := used(t, local, "a", daily); got != "7/24h0m0s" {
			t.Errorf("loaded: used %s, want 7 of the day", got)
		}
	})
}
