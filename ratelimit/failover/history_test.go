package failover_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

// histories is set to 20000 for the long run of random histories.
var histories = flag.Int("histories", 40, "random histories in TestHistoriesThroughOutages")

var historyPlans = [...]*ratelimit.Plan{
	ratelimit.MustPlan("minute and day", ratelimit.Penalty{}, ratelimit.PerMinute(300), ratelimit.PerDay(10_000)),
	ratelimit.MustPlan("hour and day", ratelimit.Penalty{}, ratelimit.PerHour(5000), ratelimit.PerDay(10_000)),
	ratelimit.MustPlan("minute and hour", ratelimit.Penalty{}, ratelimit.PerMinute(300), ratelimit.PerHour(5000)),
	ratelimit.MustPlan("month", ratelimit.Penalty{}, ratelimit.PerHour(5000), ratelimit.PerMonth(20_000)),
	ratelimit.MustPlan("billing", ratelimit.Penalty{}, ratelimit.PerMinute(300), ratelimit.PerMonth(20_000).From(17)),
	ratelimit.MustPlan("smooth", ratelimit.Penalty{}, ratelimit.PerHour(360).Smooth(60), ratelimit.PerDay(10_000)),
}

// Through outages and lost answers the primary counts all that was admitted, and each
// adjustment, once, in the fixed and calendar windows that were charged. After each outage it
// agrees with a model that was told immediately.
func TestHistoriesThroughOutages(t *testing.T) {
	for seed := range *histories {
		t.Run(fmt.Sprint("history ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(seed), 0))
			var lossy atomic.Bool
			answers := rand.New(rand.NewPCG(uint64(seed), 1))
			loses := func(int) bool { return lossy.Load() && answers.IntN(3) == 0 }
			opts := failover.Options{OnChange: func(error) {}}
			remembering(t, opts, loses, func(r *rig, _ *once) {
				taken := rand.New(rand.NewPCG(uint64(seed), 2))
				r.shared.lost = func() bool { return lossy.Load() && taken.IntN(3) == 0 }
				h := &outages{rig: r, random: random, model: enginetest.NewModel(time.Now)}
				for range 12 {
					h.rest()
					lossy.Store(true)
					h.steps(random.IntN(20))
					if random.IntN(3) > 0 {
						h.lose()
					} else {
						h.shared.set(down) // which no request has noticed
					}
					h.steps(random.IntN(40))
					lossy.Store(false)
					if random.IntN(2) > 0 {
						h.settleHolds()
					}
					h.log("regain")
					h.regain()
					h.settleHolds()
					h.shared.endHolds(t) // of takes whose answer was lost
					time.Sleep(time.Second)
					if h.compare(); t.Failed() {
						t.Fatalf("after\n%s", strings.Join(h.lines[max(len(h.lines)-60, 0):], "\n"))
					}
				}
			})
		})
	}
}

// outages is a history of calls of the rig, and of a model.
type outages struct {
	*rig
	random   *rand.Rand
	model    enginetest.Model
	admitted []admission
	ids      int
	lines    []string
}

type admission struct {
	subject string
	d       ratelimit.Decision
	id      string // under which it is held
}

func (h *outages) log(args ...any) {
	h.lines = append(h.lines, time.Now().UTC().Format("02 15:04:05.000 ")+fmt.Sprint(args...))
}

// rest lets time pass while all is merged, often until a window is about to end. An outage takes
// minutes: the primary forgets ids after ten.
func (h *outages) rest() {
	next := []time.Duration{time.Minute, time.Hour, 24 * time.Hour}[h.random.IntN(3)]
	now := time.Now()
	time.Sleep(now.Truncate(next).Add(next).Sub(now) - time.Duration(h.random.IntN(120))*time.Second)
}

func (h *outages) steps(n int) {
	for range n {
		switch n := h.random.IntN(10); {
		case n < 2:
			time.Sleep(time.Duration(h.random.IntN(20_000)) * time.Millisecond)
		case n < 6 && len(h.admitted) > 0:
			h.settle(&h.admitted[max(len(h.admitted)-1-h.random.IntN(12), 0)])
		case n == 6:
			_, err := h.Peek(ctx, "a", historyPlans[h.random.IntN(len(historyPlans))])
			must(h, err)
		default:
			subject, plan := string(rune('a'+h.random.IntN(2))), historyPlans[h.random.IntN(len(historyPlans))]
			a := admission{subject: subject}
			var takes ratelimit.Limiter = h.Limiter
			if h.random.IntN(2) > 0 {
				h.ids++
				a.id = fmt.Sprint("id", h.ids)
				takes = h.Hold(a.id, time.Minute)
			}
			d, err := takes.Take(ctx, subject, plan, 1+h.random.Int64N(9))
			must(h, err)
			h.log(d.Outcome, " ", subject, " ", d.Cost, " ", plan.Name(), " ", a.id)
			if d.Allowed() {
				a.d = d
				h.admitted = append(h.admitted, a)
				d.Cost = 0
				h.tell(subject, &d, a.d.Cost)
			}
		}
	}
}

func (h *outages) settle(a *admission) {
	units := h.random.Int64N(20) * h.random.Int64N(2)
	h.log("settle ", a.subject, " ", a.d.Cost, " ", a.d.Plan.Name(), " ", a.id, " at ", units)
	h.tell(a.subject, &a.d, units)
	must(h, h.Adjust(ctx, a.subject, &a.d, units, a.id))
	a.d.Cost, a.id = units, ""
}

// settleHolds settles what is still held.
func (h *outages) settleHolds() {
	for i := range h.admitted {
		if a := &h.admitted[i]; a.id != "" {
			h.settle(a)
		}
	}
}

func (h *outages) tell(subject string, d *ratelimit.Decision, units int64) {
	must(h, h.model.Adjust(ctx, subject, d, units, ""))
}

func (h *outages) compare() {
	for _, subject := range []string{"a", "b"} {
		for _, plan := range historyPlans {
			got, err := h.shared.engine.Peek(ctx, subject, plan)
			must(h, err)
			want, _ := h.model.Peek(ctx, subject, plan)
			for i := range engine.Of(plan).Len() {
				if engine.Of(plan).Kind(i) > 0 && got.States[i].Remaining != want.States[i].Remaining {
					h.Errorf("%s has %d of %v left at the primary, want %d", subject, got.States[i].Remaining, engine.Of(plan).Quota(i), want.States[i].Remaining)
				}
			}
		}
	}
}

func TestConformance(t *testing.T) {
	engine := func(t *testing.T, start time.Time) (*memory.Limiter, *ratelimittest.Clock) {
		clock := ratelimittest.NewClock(start)
		l, err := memory.New(memory.Options{Now: clock.Now})
		must(t, err)
		return l, clock
	}
	limiter := func(t *testing.T, primary ratelimit.Limiter, opts failover.Options) *failover.Limiter {
		if strings.HasSuffix(t.Name(), "/history_40") {
			testenv.Long(t, "the engine that decides makes the same histories in tests of its own")
		}
		l, err := failover.New(primary, opts)
		must(t, err)
		t.Cleanup(func() { l.Close() })
		return l
	}
	t.Run("the primary decides", func(t *testing.T) {
		enginetest.Run(t, func(t *testing.T, start time.Time) enginetest.Engine {
			primary, clock := engine(t, start)
			// A machine that is busy is no fault.
			l := limiter(t, primary, failover.Options{Local: newEngine(t), Budget: time.Minute})
			return enginetest.Engine{Limiter: l, Set: clock.Set}
		}, enginetest.Gaps{})
	})
	t.Run("the local engine decides", func(t *testing.T) {
		enginetest.Run(t, func(t *testing.T, start time.Time) enginetest.Engine {
			local, clock := engine(t, start)
			primary := newShared(t)
			primary.set(down)
			l := limiter(t, primary, failover.Options{Local: local, ConsecutiveFailures: 1, Backoff: time.Hour})
			_, err := l.Take(t.Context(), "another", daily, 1)
			must(t, err)
			if !l.Open() {
				t.Fatal("the circuit is not open")
			}
			return enginetest.Engine{Limiter: here{l}, Set: clock.Set}
		}, enginetest.Gaps{})
	})
}

// A here is a Limiter during an outage. Its commands succeed if they take effect in
// this process.
type here struct{ *failover.Limiter }

func inThisProcess(err error) error {
	if errors.Is(err, failover.ErrLocalOnly) {
		return nil
	}
	return err
}

func (h here) Reset(ctx context.Context, subject string) error {
	return inThisProcess(h.Limiter.Reset(ctx, subject))
}

func (h here) Ban(ctx context.Context, subject string, length time.Duration, reason string) error {
	return inThisProcess(h.Limiter.Ban(ctx, subject, length, reason))
}

func (h here) Unban(ctx context.Context, subject string) (bool, error) {
	unbanned, err := h.Limiter.Unban(ctx, subject)
	return unbanned, inThisProcess(err)
}
