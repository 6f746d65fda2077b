package ratelimittest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/animalstore/gatehouse/internal/gcra"
	"github.com/animalstore/gatehouse/internal/nilvalue"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// A Recorder is a Limiter that asks another one, and records the calls of Take and
// TakeAll. It can also fail or refuse on demand. It is made by [NewRecorder], and is safe
// for concurrent use. It does not record invalid calls, nor calls with plans without quotas,
// which decide alone.
//
// It is an [engine.Peeker], [engine.Adjuster] and [engine.MultiTaker]. What the other limiter
// cannot do is an error that wraps [errors.ErrUnsupported]. It is not an [engine.Holder]: a
// service that sets Options.Hold of package limit is tested with package memory instead.
type Recorder struct {
	limiter ratelimit.Limiter

	mu     sync.Mutex
	calls  []Call
	forced ratelimit.Outcome // of every request; 0: the limiter decides
	failed bool
}

// A Call is a request that a [Recorder] was asked about, and the answer. A request with
// several charges has one Call for each.
type Call struct {
	ratelimit.Charge
	Decision ratelimit.Decision // zero if the call failed
}

// NewRecorder returns a Recorder that asks l. It panics if l is nil or a nil pointer.
func NewRecorder(l ratelimit.Limiter) *Recorder {
	if nilvalue.InEngine(l) {
		panic("ratelimittest: NewRecorder: the limiter must not be nil or the zero memory.Limiter")
	}
	return &Recorder{limiter: l}
}

// Calls returns the calls since the Recorder was made, in order.
func (r *Recorder) Calls() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// Fail makes every call fail with an error that wraps [ratelimit.ErrUnavailable], as in an
// outage of Redis, until [Recorder.Resume].
func (r *Recorder) Fail() { r.force(0, true) }

// Deny makes every request denied until [Recorder.Resume], without a charge. With
// [ratelimit.Limited] the quota with the shortest window is exhausted. With [ratelimit.Banned]
// the subject is banned for as long as the first ban of its plan, or for one minute if the
// plan has none. It panics with any other outcome: requests are suspended by their plan, a
// [ratelimit.SuspendedPlan]. Of a request with several charges each is denied, and the
// response shows the one with the longest wait ([engine.Deciding]).
func (r *Recorder) Deny(outcome ratelimit.Outcome) {
	if outcome != ratelimit.Limited && outcome != ratelimit.Banned {
		panic(fmt.Sprintf("ratelimittest: Deny: the outcome must be Limited or Banned, got %v", outcome))
	}
	r.force(outcome, false)
}

// Resume ends what Fail or Deny began.
func (r *Recorder) Resume() { r.force(0, false) }

func (r *Recorder) force(outcome ratelimit.Outcome, fail bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forced, r.failed = outcome, fail
}

var errFailed = fmt.Errorf("ratelimittest: Recorder.Fail was called: %w", ratelimit.ErrUnavailable)

// state returns what every request is answered with.
func (r *Recorder) state() (forced ratelimit.Outcome, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed {
		err = errFailed
	}
	return r.forced, err
}

// Take implements [ratelimit.Limiter].
func (r *Recorder) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	if d, err := engine.Decide(subject, plan, cost); err != nil || d.Outcome != 0 {
		return d, err
	}
	charges := []ratelimit.Charge{{Subject: subject, Plan: plan, Cost: cost}}
	decisions := make([]ratelimit.Decision, 1)
	err := r.decide(ctx, charges, decisions, func() (err error) {
		decisions[0], err = r.limiter.Take(ctx, subject, plan, cost)
		return err
	})
	return decisions[0], err
}

// TakeAll implements [engine.MultiTaker].
func (r *Recorder) TakeAll(ctx context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	if err := engine.CheckAll(charges, decisions); err != nil {
		return err
	}
	return r.decide(ctx, charges, decisions, func() error {
		return ratelimit.TakeAll(ctx, r.limiter, charges, decisions)
	})
}

// decide sets the decisions about the charges, and records them.
func (r *Recorder) decide(ctx context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision, ask func() error) error {
	forced, err := r.state()
	switch {
	case err != nil:
	case forced != 0:
		for i, c := range charges {
			if decisions[i], err = r.deny(ctx, c, forced); err != nil {
				break
			}
		}
	default:
		err = ask()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, c := range charges {
		if err != nil {
			decisions[i] = ratelimit.Decision{}
		}
		r.calls = append(r.calls, Call{c, decisions[i]})
	}
	return err
}

// deny returns a denial of c.
func (r *Recorder) deny(ctx context.Context, c ratelimit.Charge, outcome ratelimit.Outcome) (ratelimit.Decision, error) {
	d := engine.Uncounted(c.Plan, c.Cost, time.Now())
	if peeker, ok := r.limiter.(engine.Peeker); ok {
		var err error
		if d, err = peeker.Peek(ctx, c.Subject, c.Plan); err != nil {
			return d, err
		}
		d.Cost = c.Cost
	}
	d.Outcome, d.BanEnds, d.Receipt.BanReason = outcome, 0, nil
	if outcome == ratelimit.Banned {
		ends := time.Unix(0, d.Time).Add(cmp.Or(c.Plan.Penalty().Ban, time.Minute))
		d.BanEnds = ends.Add(time.Second - 1).Unix() // rounded up
		d.Receipt.BanReason = &strikes
	} else {
		i := max(slices.IndexFunc(c.Plan.Quotas(), func(q ratelimit.Quota) bool { return q != q.Soft() }), 0) // soft quotas refuse nothing
		d.States[i].Remaining = 0
		if q := engine.Of(c.Plan).Quota(i); q.Burst() > 0 { // its reset is the time at which it is unused
			full := gcra.New(q.Limit, q.Window, q.Burst()).Charged(gcra.At(d.Time), q.Burst())
			d.States[i].Reset, d.Receipt.Rounded[i] = full.RoundUp()
		}
	}
	engine.Complete(&d)
	return d, nil
}

var strikes = engine.ReasonStrikes

// Peek implements [engine.Peeker]. It is not recorded.
func (r *Recorder) Peek(ctx context.Context, subject string, plan *ratelimit.Plan) (ratelimit.Decision, error) {
	p, ok := r.limiter.(engine.Peeker)
	if err := r.check(ok, "Peeker"); err != nil {
		return ratelimit.Decision{}, err
	}
	return p.Peek(ctx, subject, plan)
}

// Adjust implements [engine.Adjuster]. It is not recorded.
func (r *Recorder) Adjust(ctx context.Context, subject string, d *ratelimit.Decision, units int64, id string) error {
	a, ok := r.limiter.(engine.Adjuster)
	if err := r.check(ok, "Adjuster"); err != nil {
		return err
	}
	return a.Adjust(ctx, subject, d, units, id)
}

// check returns the error of a call to a capability.
func (r *Recorder) check(has bool, capability string) error {
	if !has {
		return fmt.Errorf("ratelimittest: %T has no %s: %w", r.limiter, capability, errors.ErrUnsupported)
	}
	_, err := r.state()
	return err
}
