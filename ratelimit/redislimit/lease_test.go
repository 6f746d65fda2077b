package redislimit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// A leased is a subject that leases.
type leased struct {
	*testing.T
	m       *miniredis.Miniredis
	l       *redislimit.Limiter
	plan    *ratelimit.Plan
	charged ratelimit.Decision
	now     time.Time
}

func (r *leased) pass(d time.Duration) {
	r.now = r.now.Add(d)
	r.m.SetTime(r.now)
	r.m.FastForward(d)
}

func (r *leased) lease(cost int64, terms engine.Terms) {
	r.Helper()
	d, err := r.l.Lease(ctx, "a", r.plan, cost, terms)
	must(r, err)
	r.charged = d
}

// unspent are the terms to give back so many units of the last lease.
func (r *leased) unspent(units int64) engine.Terms {
	d := r.charged
	d.Cost = units
	return engine.Terms{Back: &d}
}

// What was charged before a loss is not given back after it, whatever was charged since. Without
// a loss it is, as long as a window lasts that was charged.
func TestLeaseComesBackUnlessLost(t *testing.T) {
	lost := func(r *leased) { r.m.FlushAll(); r.pass(time.Microsecond) }
	for name, test := range map[string]struct {
		then func(*leased)
		want int64 // used of the day at the end, of 31, and of 40 that are charged in between
	}{
		"nothing":           {func(*leased) {}, 41},
		"minutes and hours": {func(r *leased) { r.pass(11 * time.Hour) }, 41},
		"all is lost":       {lost, 40},
		"the note is lost": {func(r *leased) {
			for _, key := range r.m.Keys() {
				if strings.Contains(key, "!") {
					r.m.Del(key)
				}
			}
			r.pass(time.Microsecond)
		}, 71},
		"the subject is":     {func(r *leased) { lost(r); r.lease(1, engine.Terms{}) }, 41},
		"it was reset":       {func(r *leased) { must(r, r.l.Reset(ctx, "a")) }, 40},
		"so it was, earlier": {func(r *leased) { r.pass(time.Hour); must(r, r.l.Reset(ctx, "a")); r.pass(10 * time.Hour) }, 40},
		"it was unbanned": {func(r *leased) {
			must(r, r.l.Ban(ctx, "a", time.Hour, ""))
			must(r, second(r.l.Unban(ctx, "a")))
		}, 41},
		"units were given back": {func(r *leased) {
			before := r.charged
			r.lease(1, engine.Terms{More: 8})
			r.lease(0, r.unspent(9))
			r.charged = before
		}, 41},
	} {
		t.Run(name, func(t *testing.T) {
			m, c := mini(t)
			r := &leased{T: t, m: m, l: newLimiter(t, c), now: time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC)}
			r.plan = ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerMinute(100), ratelimit.PerDay(1000))
			r.pass(0)
			r.lease(1, engine.Terms{More: 30})
			terms := r.unspent(30)
			test.then(r)
			must(t, second(r.l.Take(ctx, "a", r.plan, 40)))
			r.lease(0, terms)
			d, err := r.l.Peek(ctx, "a", r.plan)
			must(t, err)
			if n := 1000 - d.States[1].Remaining; n != test.want {
				t.Errorf("%d units of the day are used, want %d", n, test.want)
			}
			r.pass(13 * time.Hour)
			if left := m.Keys(); len(left) > 0 {
				t.Errorf("%q are left when the day has ended", left)
			}
		})
	}
}

// leases returns a function that has both lease, and give back of the answer before.
func (p *pair) leases(plan *ratelimit.Plan) func(what string, cost, more, back int64) {
	last := map[enginetest.Model]ratelimit.Decision{}
	return func(what string, cost, more, back int64) {
		p.Helper()
		p.agree(what, func(l enginetest.Model) (any, error) {
			terms := engine.Terms{More: more, Denied: 2}
			if d := last[l]; d.Cost > 0 && back > 0 {
				d.Cost = back
				terms.Back = &d
			}
			d, err := l.Lease(ctx, "a", plan, cost, terms)
			last[l] = d
			d.Receipt.SetGeneration(0)
			return d, err
		})
	}
}

// The fast part decides the common leases, as the model does: of requests and shares, alone and
// together, that come back or do not, in open windows and in the next ones, and after strikes.
func TestFastPartLeases(t *testing.T) {
	penalty := ratelimit.Penalty{Strikes: 3, Ban: time.Minute, Growth: 1, Max: time.Minute, Forgive: time.Hour}
	for name, quotas := range map[string][]ratelimit.Quota{
		"one window":          {ratelimit.PerMinute(1000)},
		"two":                 {ratelimit.PerMinute(1000), ratelimit.PerDay(1 << 31)},
		"three, the last one": {ratelimit.PerMinute(1 << 20), ratelimit.PerDay(1 << 19), ratelimit.PerMonth(500)},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, time.Date(2026, time.March, 1, 12, 0, 30, 250_000_000, time.UTC))
			plan := ratelimit.MustPlan("p", penalty, quotas...)
			lease := p.leases(plan)
			lease("to learn the script, and the first of the subject", 1, 0, 0)
			small := ratelimit.MustPlan("small", penalty, ratelimit.PerMinute(1))
			for range 2 {
				p.take("a", small) // a strike
			}
			lease("an admission clears it", 1, 8, 0)
			redislimit.OnlyFastPart(t)
			lease("a request and a share", 1, 8, 0)
			lease("a share for what is left of one", 0, 100, 5)
			lease("all that is left, halved", 1, 1<<40, 100)
			lease("nothing for something", 0, 0, 50)
			p.server.FastForward(31 * time.Second) // the minute ends, and the key has four seconds more
			p.set(time.Minute)
			lease("the next minute", 1, 8, 0)
			if left := p.server.TTL(redislimit.Key(p.engine, "a")); left < 30*time.Second {
				t.Errorf("in the next minute the key lasts %v, want until its end, 30s", left)
			}
			lease("a share that comes back whole", 0, 9, 9)
			p.set(90 * time.Second)
			lease("the minute after that", 3, 8, 0)
			lease("and so on", 0, 8, 11)
			lease("more than was charged", 1, 8, 2000)
		})
	}
}

// A lease is one call of the script, also if it starts a ban.
func TestLeaseIsOneCall(t *testing.T) {
	_, c := mini(t)
	calls := new(scriptCounter)
	l := newLimiter(t, c)
	penalty := ratelimit.Penalty{Strikes: 2, Ban: time.Hour, Growth: 1, Max: time.Hour, Forgive: time.Hour}
	plan := ratelimit.MustPlan("", penalty, ratelimit.PerDay(1).In(time.UTC))
	if _, err := l.Take(ctx, "a", plan, 1); err != nil { // which also loads the script
		t.Fatal(err)
	}
	c.AddHook(calls)
	d, err := l.Lease(ctx, "a", plan, 1, engine.Terms{More: 8, Denied: 3})
	if err != nil || d.Outcome != ratelimit.Banned || !d.Struck {
		t.Fatalf("three denials and one request are %v (%v), want that they start a ban", d.Outcome, err)
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("a lease that starts a ban took %d calls of the script, want 1", n)
	}
	if bans, err := l.Bans(ctx); err != nil || len(bans) != 1 {
		t.Errorf("the bans are %v (%v), want this one", bans, err)
	}
}
