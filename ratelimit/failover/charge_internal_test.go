package failover

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

func TestChargeByTaking(t *testing.T) {
	type units = [ratelimit.MaxQuotas]int64
	for _, test := range []struct {
		name          string
		before        int64 // used in every window
		charge, after units
	}{
		{"nothing", 5, units{}, units{5, 5, 5}},
		{"the same in every window", 0, units{7, 7, 7}, units{7, 7, 7}},
		{"each window its own", 0, units{1, 30, 400}, units{1, 30, 400}},
		{"two alike", 0, units{2, 30, 30}, units{2, 30, 30}},
		{"the shortest has most", 0, units{9, 3, 6}, units{9, 3, 6}},
		{"only the day", 0, units{0, 0, 400}, units{0, 0, 400}},
		{"as much as fits", 6, units{8, 8, 8}, units{10, 10, 10}},
		{"more than could ever fit", 0, units{60, 60, 60}, units{10, 10, 10}},
		{"a day that is used up leaves the rest as it is", 0, units{5, 50, 6000}, units{0, 0, 1000}},
		{"windows that have begun are charged for longer ones", 1, units{0, 5, 5}, units{6, 6, 6}},
	} {
		t.Run(test.name, func(t *testing.T) {
			engine, err := memory.New(memory.Options{Now: func() time.Time { return began }})
			if err != nil {
				t.Fatal(err)
			}
			p := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerMinute(10), ratelimit.PerHour(100), ratelimit.PerDay(1000))
			if test.before > 0 {
				engine.Take(context.Background(), "a", p, test.before)
			}
			u := usage{plan: p, at: began.UnixNano(), units: test.charge}
			if err := chargeByTaking(context.Background(), engine, "a", &u); err != nil {
				t.Fatal(err)
			}
			if slices.Max(u.units[:]) != 0 {
				t.Errorf("%v is left to be charged", u.units)
			}
			d, _ := engine.Peek(context.Background(), "a", p)
			var got units
			for i := range p.Len() {
				got[i] = p.Quota(i).Limit - d.States[i].Remaining
			}
			if got != test.after {
				t.Errorf("%v charged on %d of each: got %v, want %v", test.charge, test.before, got, test.after)
			}
		})
	}
}

// A refusing engine fails in a stated way.
type refusing struct{ err error }

func (r *refusing) Take(context.Context, string, *ratelimit.Plan, int64) (ratelimit.Decision, error) {
	return ratelimit.Decision{}, r.err
}

// What an engine will never take is not offered for ever.
func TestInvalidChargesAreDropped(t *testing.T) {
	engine := &refusing{err: ratelimit.ErrInvalid}
	l, err := New(engine, FailOpen, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.journal.add("a", plan, 1, time.Now().UnixNano())
	e := l.journal.claimAny(0)
	if err := l.merger.merge(context.Background(), e); err != nil || !l.journal.empty() {
		t.Errorf("merge returned %v and left %d entries", err, l.journal.held.Load())
	}
	if n := l.Stats().Dropped; n != 1 {
		t.Errorf("%d usages were counted as dropped, want 1", n)
	}
	engine.err = errors.New("down")
	l.journal.add("a", plan, 1, time.Now().UnixNano())
	if err := l.merger.merge(context.Background(), l.journal.claimAny(0)); err == nil || l.journal.empty() {
		t.Errorf("merge returned %v and left %d entries", err, l.journal.held.Load())
	}
}
