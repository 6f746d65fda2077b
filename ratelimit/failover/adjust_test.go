package failover_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/failover"
)

// A once is a primary that makes adjustments with an id once in ten minutes, and loses some answers.
type once struct {
	*picky
	made  map[string]string // what was asked, by id
	loses func(n int) bool  // the answer to the n-th adjustment
	n     int
}

var errLost = errors.New("connection reset")

func (o *once) Adjust(ctx context.Context, subject string, d *ratelimit.Decision, units int64, id string) error {
	if err := o.pass(ctx); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	asked := fmt.Sprint(subject, d, units)
	switch before, again := o.made[id]; {
	case id == "":
		panic("an adjustment without an id cannot be repeated")
	case again && before != asked:
		panic("an id was used for " + before + " and for " + asked)
	case !again:
		o.made[id] = asked
		time.AfterFunc(10*time.Minute, func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			delete(o.made, id)
		})
		if err := o.adjust(ctx, subject, d, units, id); err != nil {
			return err
		}
	}
	if o.n++; o.loses(o.n) {
		return errLost
	}
	return nil
}

// remembering runs a test whose primary is a once.
func remembering(t *testing.T, opts failover.Options, loses func(n int) bool, test func(*rig, *once)) {
	t.Helper()
	run(t, withLocal, opts, func(r *rig) {
		o := &once{picky: &picky{shared: r.shared}, made: map[string]string{}, loses: loses}
		opts.Local = r.local
		r.use(o, opts)
		test(r, o)
	})
}

func first(n int) func(int) bool { return func(i int) bool { return i <= n } }

// An adjustment is made where the requests of the subject are counted, and at the primary
// when it is back. These are the cases at the edge; TestHistoriesThroughOutages has the others.
func TestAdjustInAnOutage(t *testing.T) {
	slow := ratelimit.MustPlan("slow", ratelimit.Penalty{}, ratelimit.PerHour(60).Smooth(60), ratelimit.PerDay(1000))
	for _, test := range []struct {
		name string
		plan *ratelimit.Plan // of what the primary has counted in the end
		want string
		run  func(r *rig)
	}{
		{"a denial", daily, "5/24h0m0s", func(r *rig) {
			r.takeN("a", daily, 5)
			r.lose()
			d := ratelimit.Decision{Outcome: ratelimit.Limited, Plan: daily, Cost: 5, Time: time.Now().UnixNano()}
			r.adjust("a", &d, 0)
		}},
		{"counted elsewhere", daily, "17/24h0m0s", func(r *rig) {
			r.takeN("a", daily, 10)
			r.lose()
			d := engine.Uncounted(daily, 0, time.Now())
			r.adjust("a", &d, 7)
		}},
		{"more than a count holds", daily, "3/24h0m0s", func(r *rig) {
			r.lose()
			d := r.take("a", daily)
			r.adjust("a", &d, math.MaxInt64)
			r.adjust("a", &d, 3)
		}},
		{"the largest costs, which neither wrap nor grant anything", largest, "0/24h0m0s", func(r *rig) {
			r.lose()
			r.takeN("a", largest, fixedwindow.MaxUnits-1)
			d := r.takeN("a", largest, 1)
			if d := r.take("a", largest); d.Outcome != ratelimit.Limited {
				r.Errorf("after the largest limit: got %v, want limited", d.Outcome)
			}
			r.adjust("a", &d, math.MaxInt64)
			r.adjust("a", &d, 0)
		}},
		{"what a smooth quota is given back in an outage is left out", slow, "45/1h0m0s 30/24h0m0s", func(r *rig) {
			r.takeN("a", slow, 30)
			d := r.takeN("a", slow, 30)
			r.lose()
			time.Sleep(15 * time.Minute)
			r.adjust("a", &d, 0)
		}},
		{"and what is used of it", slow, "0/1h0m0s 70/24h0m0s", func(r *rig) {
			r.lose()
			d := r.takeN("a", slow, 60)
			r.adjust("a", &d, 70)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			run(t, withLocal, failover.Options{}, func(r *rig) {
				test.run(r)
				r.regain()
				r.wantUsed("at the primary", r.shared.engine, "a", test.plan, test.want)
			})
		})
	}
}

// When the primary may have forgotten the id of an adjustment, units that it adds count twice, and
// units that it gives back stay given back once.
func TestIdsAreForgotten(t *testing.T) {
	for _, test := range []struct {
		away  time.Duration
		units int64 // instead of 100
		want  string
	}{
		{away: 8 * time.Minute, units: 130, want: "130/24h0m0s"},
		{away: 8 * time.Minute, units: 70, want: "70/24h0m0s"},
		{away: time.Hour, units: 130, want: "160/24h0m0s"},
		{away: time.Hour, units: 70, want: "70/24h0m0s"},
	} {
		remembering(t, failover.Options{}, func(int) bool { return false }, func(r *rig, o *once) {
			d := r.takeN("a", daily, 100)
			o.loses = first(1)
			r.adjust("a", &d, test.units)
			o.set(down)
			time.Sleep(test.away)
			r.regain()
			r.wantUsed(fmt.Sprint("settled at ", test.units, ", and repeated after ", test.away), r.shared.engine, "a", daily, test.want)
		})
	}
}

// So it is when the primary is first asked by a merge, whose answers are lost.
func TestIdsOfMergesAreForgotten(t *testing.T) {
	remembering(t, failover.Options{}, first(0), func(r *rig, o *once) {
		loses := func(loses func(int) bool) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.loses = loses
		}
		d := r.takeN("a", daily, 100)
		r.lose()
		r.adjust("a", &d, 70)
		loses(func(int) bool { return true })
		r.shared.set(nil)
		time.Sleep(time.Hour)
		loses(first(0))
		r.regain()
		r.wantUsed("given back once", r.shared.engine, "a", daily, "70/24h0m0s")
	})
}

// A refund of usage that is being charged waits for the charge, so that it finds what
// it gives back.
func TestAdjustDuringACharge(t *testing.T) {
	for _, test := range []struct {
		name  string
		after time.Duration // from the request to the refund
	}{{"the charge is under way", 110 * time.Millisecond}, {"the charge failed", 5 * time.Second}} {
		t.Run(test.name, func(t *testing.T) {
			pick(t, failover.Options{}, func(r *rig, p *picky) {
				p.charge = func(ctx context.Context, _ string) error { return slow(30 * time.Millisecond)(ctx) }
				r.shared.set(down)
				d := r.takeN("a", daily, 5)
				if test.after < time.Second {
					r.shared.set(nil)
				}
				time.Sleep(test.after)
				synctest.Wait()
				r.shared.set(nil)
				r.adjust("a", &d, 0)
				r.regain()
				r.wantUsed("refunded", r.shared.engine, "a", daily, "0/24h0m0s")
			})
		})
	}
}

// While the primary refuses the usage of a subject, the local engine decides about it,
// and adjusts it. The primary gets one sum when it no longer refuses.
func TestAdjustOfASubjectThatWaits(t *testing.T) {
	pick(t, failover.Options{JournalSize: 1}, func(r *rig, p *picky) {
		r.shared.set(down)
		d := r.takeN("bad", daily, 5)
		r.shared.set(nil)
		time.Sleep(time.Second)
		r.adjust("bad", &d, 9)
		p.mu.Lock()
		p.charge = func(context.Context, string) error { return nil }
		p.mu.Unlock()
		r.adjust("bad", &d, 2)
		r.wantUsed("by the engine that decides", r.local, "bad", daily, "2/24h0m0s")
		r.regain()
		r.wantUsed("by the primary", r.shared.engine, "bad", daily, "2/24h0m0s")
	})
}

// Without a local engine the caller repeats an adjustment whose answer was lost.
func TestAdjustAlone(t *testing.T) {
	run(t, alone, failover.Options{}, func(r *rig) {
		o := &once{picky: &picky{shared: r.shared}, made: map[string]string{}, loses: first(1)}
		r.use(o, failover.Options{})
		elsewhere := engine.Uncounted(daily, 0, time.Now())
		for call, want := range []error{errLost, nil, nil} {
			if err := r.Adjust(ctx, "a", &elsewhere, 7, "id"); !errors.Is(err, want) {
				r.Errorf("call %d: got error %v, want %v", call+1, err, want)
			}
		}
		r.wantUsed("repeated with its id", r.shared.engine, "a", daily, "7/24h0m0s")
	})
}

// What has no room in the journal is refused, and changes nothing.
func TestAdjustWithoutRoom(t *testing.T) {
	run(t, withLocal, failover.Options{JournalSize: 2}, func(r *rig) {
		a, b := r.takeN("a", daily, 10), r.takeN("b", daily, 10)
		r.lose() // with another subject
		r.adjust("a", &a, 20)
		err := r.Adjust(ctx, "b", &b, 20, "")
		if !errors.Is(err, ratelimit.ErrUnavailable) || !strings.Contains(err.Error(), "Options.JournalSize is 2") {
			r.Errorf("got error %v, want one that wraps ErrUnavailable and names the option", err)
		}
		r.wantUsed("refused", r.local, "b", daily, "0/24h0m0s")
		r.adjust("a", &a, 30)
		r.regain()
		r.wantUsed("adjusted", r.shared.engine, "a", daily, "30/24h0m0s")
		r.wantUsed("refused", r.shared.engine, "b", daily, "10/24h0m0s")
	})
}

// A caller whose context has ended gets its error, and nothing is counted.
func TestAdjustAfterTheContextEnded(t *testing.T) {
	run(t, withLocal, failover.Options{}, func(r *rig) {
		d := r.takeN("a", daily, 1)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if err := r.Adjust(ended, "a", &d, 7, ""); !errors.Is(err, context.Canceled) {
			r.Errorf("got error %v, want that of the context", err)
		}
		r.wantUsed("at the primary", r.shared.engine, "a", daily, "1/24h0m0s")
		r.wantUsed("here", r.local, "a", daily, "0/24h0m0s")
	})
	// Once it was sent, it may have been made, and is kept.
	remembering(t, failover.Options{Budget: time.Second}, first(0), func(r *rig, _ *once) {
		d := r.take("a", daily)
		r.shared.set(hangs)
		ends, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if err := r.Adjust(ends, "a", &d, 7, "id"); err != nil {
			r.Errorf("a context that ends before the primary answers: %v", err)
		}
		r.shared.set(nil)
		time.Sleep(time.Minute)
		r.wantUsed("at the primary", r.shared.engine, "a", daily, "7/24h0m0s")
	})
}
