//go:build unix

package redislimit_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// A settling engine holds each charge, and settles it at what it was charged.
type settling struct{ *redislimit.Limiter }

func (l settling) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	id := rand.Text()
	d, err := l.Hold(id, time.Hour).Take(ctx, subject, plan, cost)
	if err == nil {
		err = l.Adjust(ctx, subject, &d, d.Cost, id)
	}
	return d, err
}

func (l settling) TakeAll(ctx context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	id := rand.Text()
	err := l.Hold(id, time.Hour).(engine.MultiTaker).TakeAll(ctx, charges, decisions)
	for i := range charges {
		if err == nil {
			err = l.Adjust(ctx, charges[i].Subject, &decisions[i], decisions[i].Cost, id)
		}
	}
	return err
}

// A held charge that is settled at what it was charged is a charge like any other.
func TestConformanceOfHolds(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	enginetest.Run(t, few(8, holding(onServer(s))), enginetest.Gaps{})
	if keys := clientOf(t, s).Keys(ctx, "*}+*").Val(); len(keys) > 0 {
		t.Errorf("what is held in the end: %q, want nothing", keys)
	}
}

func holding(newEngine func(*testing.T, time.Time) enginetest.Engine) func(*testing.T, time.Time) enginetest.Engine {
	return func(t *testing.T, start time.Time) enginetest.Engine {
		e := newEngine(t, start)
		e.Limiter = settling{e.Limiter.(*redislimit.Limiter)}
		return e
	}
}

// A holds test is processes that hold what they take, and a model of what is used.
type holds struct {
	*testing.T
	rand      *mathrand.Rand
	clock     *scriptClock
	client    *redis.Client
	processes []*redislimit.Limiter
	model     enginetest.Model
	all       []*held
	log       []string
}

// A held charge, as the process and the model have it.
type held struct {
	process       int
	subject, id   string
	engine, model ratelimit.Decision
	timeout, ends int64 // seconds
	forgotten     int64 // when Redis may forget that it was given back; 0: it was not
	gone          bool  // it was given back, or settled
	lost          bool  // its key has expired
	settled       bool  // or its process has died
}

var holdPlans = func() []*ratelimit.Plan {
	penalty := ratelimit.Penalty{Strikes: 2, Ban: 20 * time.Second, Growth: 2, Max: time.Minute, Decay: 5 * time.Second, Forgive: time.Minute}
	quotas := [][]ratelimit.Quota{
		{ratelimit.PerMinute(20), ratelimit.PerHour(60)},
		{ratelimit.PerMinute(1 << 40)},
		{{Limit: 10, Window: 2 * time.Second}, {Limit: 20, Window: 5 * time.Second}, {Limit: 30, Window: 10 * time.Second}, {Limit: 40, Window: 30 * time.Second}},
		{{Limit: 10, Window: 3 * time.Second}, {Limit: 20, Window: 6 * time.Second}, {Limit: 30, Window: 12 * time.Second}, {Limit: 40, Window: 20 * time.Second}},
		{ratelimit.PerDay(30).In(time.UTC), ratelimit.PerMonth(60)},
		{ratelimit.PerMinute(20).Smooth(12), ratelimit.PerHour(30)},
		{ratelimit.PerMinute(30).Smooth(20)},
	}
	var plans []*ratelimit.Plan
	for _, q := range quotas {
		plans = append(plans, ratelimit.MustPlan(fmt.Sprint(q), penalty, q...))
	}
	return plans
}()

// What processes hold is given back once when it has expired and they no longer renew it,
// with the next held take or peek: whatever the plans, the clock and the processes do meanwhile.
func TestHoldsAgainstModel(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for seed := range uint64(40 * *histories) {
		ok := t.Run(fmt.Sprint(seed), func(t *testing.T) {
			start := time.Date(2026, time.March, 31, 23, 59, 30, 250_000_000, time.UTC)
			h := &holds{T: t, rand: mathrand.New(mathrand.NewPCG(seed, 1)), clock: newScriptClock(t, start), client: clientOf(t, s)}
			h.client.AddHook(h.clock)
			h.model = enginetest.NewModel(h.clock.Now)
			first := newLimiter(t, h.client)
			h.processes = []*redislimit.Limiter{first, newLimiterOf(t, h.client, first), newLimiterOf(t, h.client, first)}
			for range 250 {
				h.step()
				if t.Failed() {
					t.Fatalf("after\n%s", strings.Join(h.log[max(0, len(h.log)-60):], "\n"))
				}
			}
		})
		if !ok {
			return
		}
	}
}

func (h *holds) step() {
	h.Helper()
	process := h.rand.IntN(len(h.processes))
	l, subject, plan := h.processes[process], string(rune('a'+h.rand.IntN(2))), holdPlans[h.rand.IntN(len(holdPlans))]
	switch n := h.rand.IntN(100); {
	case n < 20:
		h.move()
	case n < 25:
		h.note("process %d dies", process)
		redislimit.Die(l)
		for _, c := range h.all {
			c.settled = c.settled || c.process == process
		}
	case n < 35:
		h.note("process %d renews", process)
		h.expire("a")
		h.expire("b")
		must(h, redislimit.Renew(l))
		for _, c := range h.all {
			if c.process == process && !c.settled && !c.gone {
				c.ends = h.clock.Now().Unix() + c.timeout + 1
			}
		}
	case n < 55:
		h.settle()
	case n < 60:
		h.agree(subject, plan, "takes", l, func(m ratelimit.Limiter) (ratelimit.Decision, error) { return m.Take(ctx, subject, plan, 1) })
	case n < 65:
		h.takeAll(process)
	case n < 70:
		h.end(subject)
		h.agree(subject, plan, "peeks", l, func(m ratelimit.Limiter) (ratelimit.Decision, error) {
			return m.(engine.Peeker).Peek(ctx, subject, plan)
		})
	default:
		h.take(process, subject, plan)
	}
}

func (h *holds) note(format string, args ...any) { h.log = append(h.log, fmt.Sprintf(format, args...)) }

func (h *holds) move() {
	by := time.Duration(h.rand.IntN(9000)-1500) * time.Millisecond
	if h.rand.IntN(20) == 0 {
		by = time.Hour
	}
	h.clock.Set(h.clock.Now().Add(by))
	h.note("clock %v", h.clock.Now().Format(time.DateTime))
}

// expire notes what Redis forgets, since the key of a subject's holds expires. Nothing is left to
// give back then.
func (h *holds) expire(subject string) {
	key, now := redislimit.HoldsKey(h.processes[0], subject), h.clock.Now().Unix()
	_, rest, _ := strings.Cut(key, "{")
	tag, _, _ := strings.Cut(rest, "}")
	if at, err := h.client.ZScore(ctx, "{"+tag+"}expiries", key).Result(); err != nil || int64(at) > now {
		return
	}
	for _, c := range h.all {
		if c.subject != subject || c.settled || c.lost {
			continue
		}
		if c.gone, c.lost = true, true; c.ends > now {
			h.Errorf("a hold is forgotten before it expires at %d: %+v", c.ends, c)
		}
		for i := range engine.Of(c.engine.Plan).Len() {
			if engine.Of(c.engine.Plan).Kind(i) > 0 && c.engine.States[i].Reset+afterlife > now {
				h.Errorf("a hold is forgotten before its window ends at %d: %+v", c.engine.States[i].Reset, c)
			}
		}
	}
}

// end has the model give back what the next held take or peek of a subject finds.
func (h *holds) end(subject string) {
	h.expire(subject)
	now := h.clock.Now().Unix()
	due := slices.DeleteFunc(slices.Clone(h.all), func(c *held) bool { return c.subject != subject || c.gone || c.ends > now })
	for _, c := range h.all {
		if len(due) > 0 && c.subject == subject && c.forgotten > 0 && c.forgotten <= now {
			c.lost = true
		}
	}
	for _, c := range due {
		c.gone, c.forgotten = true, now+600
		for _, s := range c.engine.States {
			c.forgotten = max(c.forgotten, s.Reset)
		}
		for _, o := range c.engine.Receipt.Others {
			c.forgotten = max(c.forgotten, int64(o.End))
		}
		d := c.model
		for i := range engine.Of(d.Plan).Len() {
			if engine.Of(d.Plan).Kind(i) < 0 {
				d.States[i].Reset = 0 // units of smooth quotas are not given back
			}
		}
		h.note("%s: the hold of %d units ends", subject, d.Cost)
		must(h, h.model.Adjust(ctx, subject, &d, 0, ""))
	}
}

func (h *holds) agree(subject string, plan *ratelimit.Plan, what string, l ratelimit.Limiter, do func(ratelimit.Limiter) (ratelimit.Decision, error)) (got, want ratelimit.Decision) {
	h.Helper()
	got, err := do(l)
	must(h, err)
	want, err = do(h.model)
	must(h, err)
	h.note("%s %s %v: %v", subject, what, plan, got.Outcome)
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b *ratelimit.Plan) bool { return a == b })); diff != "" {
		h.Errorf("the engine (+) and the model (-) differ:\n%s", diff)
	}
	return got, want
}

func (h *holds) take(process int, subject string, plan *ratelimit.Plan) {
	h.Helper()
	c := &held{process: process, subject: subject, id: rand.Text(), timeout: int64(1 + h.rand.IntN(8))}
	cost := int64(1 + h.rand.IntN(5))
	if plan == holdPlans[1] && h.rand.IntN(2) == 0 {
		cost <<= 31
	}
	h.end(subject)
	timeout := time.Duration(c.timeout)*time.Second - time.Duration(h.rand.IntN(2))*time.Millisecond
	timeout = max(timeout, time.Second)
	view := h.processes[process].Hold(c.id, timeout)
	c.engine, c.model = h.agree(subject, plan, fmt.Sprint("holds ", cost, " for ", timeout), view, func(m ratelimit.Limiter) (ratelimit.Decision, error) {
		return m.Take(ctx, subject, plan, cost)
	})
	c.keep(h)
}

// keep notes a charge, if it was made.
func (c *held) keep(h *holds) {
	if c.engine.Allowed() {
		c.ends = h.clock.Now().Unix() + c.timeout + 1
		h.all = append(h.all, c)
	}
}

func (h *holds) takeAll(process int) {
	h.Helper()
	id, timeout := rand.Text(), int64(1+h.rand.IntN(8))
	var charges []ratelimit.Charge
	for _, subject := range []string{"a", "b"} {
		h.end(subject)
		charges = append(charges, ratelimit.Charge{Subject: subject, Plan: holdPlans[h.rand.IntN(len(holdPlans))], Cost: int64(1 + h.rand.IntN(5))})
	}
	h.note("process %d holds %v", process, charges)
	got, want := make([]ratelimit.Decision, 2), make([]ratelimit.Decision, 2)
	must(h, ratelimit.TakeAll(ctx, h.processes[process].Hold(id, time.Duration(timeout)*time.Second), charges, got))
	must(h, h.model.TakeAll(ctx, charges, want))
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b *ratelimit.Plan) bool { return a == b })); diff != "" {
		h.Errorf("the engine (+) and the model (-) differ:\n%s", diff)
	}
	for i, c := range charges {
		(&held{process: process, subject: c.Subject, id: id, engine: got[i], model: want[i], timeout: timeout}).keep(h)
	}
}

// settle settles a charge, twice, as if the first answer was lost.
func (h *holds) settle() {
	open := slices.DeleteFunc(slices.Clone(h.all), func(c *held) bool { return c.settled })
	if len(open) == 0 {
		return
	}
	open = open[max(0, len(open)-8):] // of the others the windows have ended
	c := open[h.rand.IntN(len(open))]
	h.expire(c.subject)
	units := c.engine.Cost * int64(h.rand.IntN(4)) / 2
	h.note("%s: process %d settles %d at %d of %v %v", c.subject, c.process, c.engine.Cost, units, c.engine.Plan, c.gone)
	forget := redislimit.Holding(h.processes[c.process], c.subject, c.id)
	must(h, h.processes[c.process].Adjust(ctx, c.subject, &c.engine, units, c.id))
	forget()
	must(h, h.processes[c.process].Adjust(ctx, c.subject, &c.engine, units, c.id))
	c.settled = true
	if c.lost {
		return
	}
	if units == c.model.Cost || units == 0 { // what has ended is forgotten in any case
		must(h, second(h.model.Lease(ctx, c.subject, c.model.Plan, 0, engine.Terms{})))
	}
	if !c.gone {
		must(h, h.model.Adjust(ctx, c.subject, &c.model, units, ""))
	} else { // fixed windows are charged anew
		fixed, smooth, others := c.model, c.model, c.model
		for i := range engine.Of(fixed.Plan).Len() {
			if others.States[i].Reset = 0; engine.Of(fixed.Plan).Kind(i) < 0 {
				fixed.States[i].Reset = 0
			} else {
				smooth.States[i].Reset = 0
			}
		}
		fixed.Cost, others.Cost = 0, 0
		fixed.Receipt, smooth.Receipt.Others = ratelimit.Receipt{}, [len(smooth.Receipt.Others)]fixedwindow.Window{}
		for _, d := range []ratelimit.Decision{fixed, smooth, others} {
			must(h, h.model.Adjust(ctx, c.subject, &d, units, ""))
		}
	}
	c.gone = true
}

// While a process lives, it renews what it holds, and the last hold that is settled leaves nothing
// behind, also if Redis forgets the script in between.
func TestHoldsAreRenewed(t *testing.T) {
	t.Parallel()
	c := clientOf(t, redistest.Start(t))
	l, plan := newLimiter(t, c), lasting(100)
	other := newLimiterOf(t, c, l)
	for range 2 { // a process that has held nothing for a while begins anew
		d, err := l.Hold("id", time.Second).Take(ctx, "a", plan, 10)
		must(t, err)
		must(t, c.ScriptFlush(ctx).Err())
		ends := func() float64 { return c.ZRangeWithScores(ctx, redislimit.HoldsKey(l, "a"), 0, -1).Val()[0].Score }
		first := ends()
		eventually(t, "the hold is renewed", func() bool { return ends() > first })
		must(t, l.Adjust(ctx, "a", &d, 7, "id"))
		if n := c.Exists(ctx, redislimit.HoldsKey(l, "a")).Val(); n != 0 {
			t.Error("what is held of the subject is there after all was settled")
		}
		eventually(t, "nothing is renewed any more", func() bool { return !redislimit.Renewing(l) })
	}
	_, err := l.Hold("dead", time.Second).Take(ctx, "a", plan, 20)
	must(t, err)
	redislimit.Die(l)
	eventually(t, "what the dead process held is given back", func() bool {
		return used(t, other, "a", 100) == 14
	})
}

// Peeks of one command give back what has expired of the holds of each subject.
func TestPeeksEndHolds(t *testing.T) {
	m, c := mini(t)
	l, plan, now := newLimiter(t, c), lasting(100), time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC)
	m.SetTime(now)
	for subject, timeout := range map[string]time.Duration{"a": time.Second, "b": time.Hour, "d": time.Second} {
		must(t, second(l.Take(ctx, subject, plan, 1)))
		must(t, second(l.Hold("id", timeout).Take(ctx, subject, plan, 10)))
	}
	redislimit.Die(l)
	m.SetTime(now.Add(3 * time.Second))
	left, err := redislimit.PeekAll(l, plan, "a", "b", "d", "c")
	if must(t, err); !slices.Equal(left, []int64{99, 89, 99, 100}) {
		t.Errorf("%d are left for a, b, d and c, want 99 after what a and d held, 89 while b holds, and 100", left)
	}
}

// Peeks are answered where nothing can be written, and beside a key that has something else.
func TestPeeksThatCannotEndHolds(t *testing.T) {
	t.Parallel()
	c, clock := clientOf(t, redistest.Start(t)), newScriptClock(t, time.Now())
	c.AddHook(clock)
	l, plan := newLimiter(t, c), lasting(100)
	must(t, second(l.Hold("id", time.Second).Take(ctx, "a", plan, 10)))
	redislimit.Die(l)
	must(t, c.Set(ctx, redislimit.HoldsKey(l, "b"), "x", 0).Err())
	clock.Set(clock.Now().Add(3 * time.Second))
	for _, test := range []struct {
		replicas string // without which the server refuses to write
		want     []int64
	}{{"1", []int64{100, 90}}, {"0", []int64{100, 100}}} {
		must(t, c.ConfigSet(ctx, "min-replicas-to-write", test.replicas).Err())
		left, err := redislimit.PeekAll(l, plan, "b", "a")
		if err != nil || !slices.Equal(left, test.want) {
			t.Errorf("with %s replicas wanted: %d are left for b and a (%v), want %d", test.replicas, left, err, test.want)
		}
	}
}

// What could not be settled is not renewed, since its request may have ended, and can be settled
// for ten minutes.
func TestHoldThatCouldNotBeSettled(t *testing.T) {
	m, c := mini(t)
	l, plan := newLimiter(t, c), lasting(100)
	d, err := l.Hold("id", time.Hour).Take(ctx, "a", plan, 10)
	must(t, err)
	if late, due := redislimit.RenewAfter(l, 10*time.Minute, 0), redislimit.RenewAfter(l, 15*time.Minute, 0); late != 0 || due != 1 {
		t.Errorf("%d and then %d holds are renewed, want one when a third of the timeout has passed", late, due)
	}
	m.SetError("lost")
	if err := l.Adjust(ctx, "a", &d, 7, "id"); !errors.Is(err, ratelimit.ErrUnavailable) {
		t.Errorf("Adjust without a server: %v", err)
	}
	m.SetError("")
	if n := redislimit.RenewAfter(l, 40*time.Minute, 9*time.Minute); n != 0 {
		t.Errorf("%d holds are renewed after settling has begun, want none", n)
	}
	must(t, l.Adjust(ctx, "a", &d, 7, "id"))
	if n := used(t, l, "a", 100); n != 7 || m.Exists(redislimit.HoldsKey(l, "a")) {
		t.Errorf("%d units are used, want 7, and that nothing is held", n)
	}
	_, err = l.Hold("id", time.Hour).Take(ctx, "a", plan, 10)
	must(t, err)
	m.SetError("lost")
	_ = l.Adjust(ctx, "a", &d, 7, "id")
	redislimit.RenewAfter(l, 40*time.Minute, 11*time.Minute)
	if redislimit.Held(l) != 0 {
		t.Error("after ten minutes the process still knows the hold")
	}
}

// A charge whose caller has left is held, and not refunded by the engine as well.
func TestHoldOfACallerThatLeft(t *testing.T) {
	_, c := mini(t)
	l, plan := newLimiter(t, c), lasting(100)
	redislimit.HoldTooLate(l, ratelimit.Charge{Subject: "a", Plan: plan, Cost: 10})
	if n := used(t, l, "a", 100); n != 10 || redislimit.Held(l) != 0 {
		t.Errorf("%d units are used and %d charges are renewed, want 10 and none", n, redislimit.Held(l))
	}
}

// What was stopped for longer than its timeout is charged anew to fixed windows. Under a smooth
// quota, where nothing was given back, the difference counts.
func TestHoldThatEndedUnderASmoothQuota(t *testing.T) {
	plan := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerMinute(100), ratelimit.PerHour(3600).Smooth(60))
	for units, want := range map[int64][2]int64{10: {90, 60 - 10 + 3}, 4: {96, 60 - 4 + 3}, 0: {100, 60}, 15: {85, 60 - 15 + 3}} {
		m, c := mini(t)
		l, now := newLimiter(t, c), time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC)
		m.SetTime(now)
		d, err := l.Hold("id", time.Second).Take(ctx, "a", plan, 10)
		must(t, err)
		resume := redislimit.Holding(l, "a", "id")
		redislimit.Die(l)
		m.SetTime(now.Add(3 * time.Second))
		other, err := l.Hold("other", time.Second).Take(ctx, "a", plan, 1)
		must(t, err)
		must(t, l.Adjust(ctx, "a", &other, 0, "other"))
		resume()
		must(t, l.Adjust(ctx, "a", &d, units, "id"))
		if d, err = l.Peek(ctx, "a", plan); err != nil || d.States[0].Remaining != want[0] || d.States[1].Remaining != want[1] {
			t.Errorf("settled at %d: %d and %d are left (%v), want %d", units, d.States[0].Remaining, d.States[1].Remaining, err, want)
		}
	}
}

// A hold lasts longer than its timeout under a smooth quota alone, which has no window that ends.
func TestHoldsAreRenewedUnderASmoothQuota(t *testing.T) {
	m, c := mini(t)
	l, now := newLimiter(t, c), time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC)
	plan := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerHour(3600).Smooth(60))
	m.SetTime(now)
	d, err := l.Hold("id", 2*time.Second).Take(ctx, "a", plan, 30)
	must(t, err)
	for range 10 {
		now = now.Add(2 * time.Second)
		m.SetTime(now)
		m.FastForward(2 * time.Second)
		must(t, redislimit.Renew(l))
	}
	must(t, l.Adjust(ctx, "a", &d, 25, "id"))
	if d, err = l.Peek(ctx, "a", plan); err != nil || d.Remaining() != 55 {
		t.Errorf("of 30 units 20 have come back, and 5 were given back: %d of 60 are left (%v), want 55", d.Remaining(), err)
	}
}

// In a cluster, what TakeAll gives back is held no longer.
func TestHoldIsGivenBackInOrder(t *testing.T) {
	_, c := mini(t)
	l := newLimiter(t, c)
	charges := []ratelimit.Charge{{Subject: "a", Plan: lasting(9), Cost: 1}, {Subject: "b", Plan: lasting(9), Cost: 5}}
	for _, left := range []int64{1, 0} { // and what is refused is not held
		must(t, engine.TakeInOrder(ctx, l.Hold("id", time.Hour), charges, make([]ratelimit.Decision, 2)))
		if n := c.Exists(ctx, redislimit.HoldsKey(l, "a")).Val(); n != left || used(t, l, "a", 9) != left || redislimit.Held(l) != int(2*left) {
			t.Errorf("%d units are used, and %d charges are held", used(t, l, "a", 9), redislimit.Held(l))
		}
		redislimit.Die(l)
		must(t, c.Del(ctx, redislimit.HoldsKey(l, "a")).Err())
		must(t, l.Reset(ctx, "a"))
	}
}

// Redis keeps a hold under a smooth quota alone for ten minutes after it has expired, also if
// a shorter one follows, so that an Adjust that failed can be repeated.
func TestHoldsAreKeptForAnAdjust(t *testing.T) {
	for timeout, after := range map[time.Duration]time.Duration{time.Second: 10 * time.Minute, time.Hour: time.Hour + 10*time.Minute + 5*time.Second} {
		m, c := mini(t)
		l, now := newLimiter(t, c), time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC)
		plan := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerDay(100).Smooth(100))
		m.SetTime(now)
		d, err := l.Hold("id", timeout).Take(ctx, "a", plan, 10)
		must(t, err)
		short, err := l.Hold("short", time.Second).Take(ctx, "a", plan, 10)
		must(t, err)
		must(t, l.Adjust(ctx, "a", &short, 0, "short"))
		other, at := newLimiterOf(t, c, l), time.Duration(0)
		for _, passed := range []time.Duration{3 * time.Second, 6 * time.Second, after} {
			m.FastForward(passed - at)
			at = passed
			m.SetTime(now.Add(at))
			must(t, second(other.Hold(fmt.Sprint(passed), time.Second).Take(ctx, "a", plan, 1)))
			redislimit.Die(other)
			must(t, redislimit.Renew(l))
		}
		must(t, l.Adjust(ctx, "a", &d, 50, "id"))
		if d, err = l.Peek(ctx, "a", plan); err != nil || d.Remaining() < 47 || d.Remaining() > 52 {
			t.Errorf("a timeout of %v, %v later: %d of 100 are left (%v), want 47 and what has come back", timeout, after, d.Remaining(), err)
		}
	}
}

// Of what processes that died have held Redis keeps nothing for longer than it can matter, also if
// the subject always holds something.
func TestHoldsThatEndedAreForgotten(t *testing.T) {
	m, c := mini(t)
	l, now := newLimiter(t, c), time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC)
	plan := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerMinute(100), ratelimit.PerHour(100))
	for n, want := range []int64{1, 2, 3, 2, 2} {
		m.SetTime(now.Add(time.Duration(n) * 25 * time.Minute))
		must(t, second(l.Hold(fmt.Sprint(n), time.Second).Take(ctx, "a", plan, 1)))
		redislimit.Die(l)
		if got := c.ZCard(ctx, redislimit.HoldsKey(l, "a")).Val(); got != want {
			t.Errorf("after %d holds Redis keeps %d, want %d", n+1, got, want)
		}
	}
}

// A subject's key that has something else is named, also if a hold has ended.
func TestHoldOfAForeignSubject(t *testing.T) {
	m, c := mini(t)
	l, now := newLimiter(t, c), time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC)
	m.SetTime(now)
	must(t, second(l.Hold("id", time.Second).Take(ctx, "a", lasting(9), 1)))
	redislimit.Die(l)
	m.SetTime(now.Add(3 * time.Second))
	must(t, c.Set(ctx, redislimit.Key(l, "a"), "x", 0).Err())
	err := second(l.Hold("other", time.Second).Take(ctx, "a", lasting(9), 1))
	if err == nil || !strings.Contains(err.Error(), redislimit.Key(l, "a")) {
		t.Errorf("%v, want an error that names %q", err, redislimit.Key(l, "a"))
	}
}

// A timeout is rounded up to seconds, and so is its end.
func TestHoldEnds(t *testing.T) {
	m, c := mini(t)
	l, now := newLimiter(t, c), time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC)
	m.SetTime(now)
	for timeout, want := range map[time.Duration]int64{time.Second: 2, time.Second + 1: 3, time.Hour: 3601} {
		d, err := l.Hold("id", timeout).Take(ctx, "a", lasting(9), 1)
		must(t, err)
		ends := c.ZRangeWithScores(ctx, redislimit.HoldsKey(l, "a"), 0, -1).Val()[0].Score
		must(t, l.Adjust(ctx, "a", &d, 0, "id"))
		if n := int64(ends) - now.Unix(); n != want {
			t.Errorf("a timeout of %v ends after %ds, want %d", timeout, n, want)
		}
	}
}

// A key of holds that has something else is named, and nothing is charged.
func TestForeignHolds(t *testing.T) {
	c := clientOf(t, redistest.Start(t))
	l := newLimiter(t, c)
	d, err := l.Hold("before", time.Hour).Take(ctx, "a", lasting(9), 1)
	must(t, err)
	key := redislimit.HoldsKey(l, "a")
	must(t, c.Set(ctx, key, "x", 0).Err())
	for what, err := range map[string]error{
		"a held Take": second(l.Hold("id", time.Second).Take(ctx, "a", lasting(9), 1)),
		"settling":    l.Adjust(ctx, "a", &d, 5, "before"),
	} {
		if err == nil || !strings.Contains(err.Error(), key) || used(t, l, "a", 9) != 1 {
			t.Errorf("%s: %v, want an error that names %q, and no charge", what, err, key)
		}
	}
}

// What is denied is not held: it would be given back later, and was never charged.
func TestDeniedTakesHoldNothing(t *testing.T) {
	_, c := mini(t)
	l := newLimiter(t, c)
	charges := []ratelimit.Charge{{Subject: "a", Plan: lasting(1), Cost: 1}, {Subject: "b", Plan: lasting(9), Cost: 1}}
	for _, charge := range charges {
		must(t, second(l.Take(ctx, charge.Subject, charge.Plan, 1)))
	}
	must(t, second(l.Hold("one", time.Hour).Take(ctx, "a", lasting(1), 1)))
	must(t, ratelimit.TakeAll(ctx, l.Hold("all", time.Hour), charges, make([]ratelimit.Decision, 2)))
	if n := c.Exists(ctx, redislimit.HoldsKey(l, "a"), redislimit.HoldsKey(l, "b")).Val(); n != 0 || redislimit.Held(l) != 0 {
		t.Errorf("Redis has holds of %d subjects, and %d are renewed, want none", n, redislimit.Held(l))
	}
}
