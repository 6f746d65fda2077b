package redislimit_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// What a subject had used before a loss is restored, less what was given back since, and
// so is its ban.
func TestRestore(t *testing.T) {
	two := ratelimit.MustPlan("two", ratelimit.Penalty{}, ratelimit.PerHour(100), ratelimit.PerDay(1000))
	monthly := ratelimit.MustPlan("monthly", ratelimit.Penalty{}, ratelimit.PerMonth(1<<40))
	smooth := ratelimit.MustPlan("smooth", ratelimit.Penalty{}, ratelimit.PerDay(1000).Smooth(100))
	const all = fixedwindow.MaxUnits
	for _, test := range []struct {
		name  string
		plan  *ratelimit.Plan
		cost  int64
		then  func(r *restoring)
		given int64
		want  string // used, and how long the ban lasts
	}{
		{"all is lost", two, 60, (*restoring).flush, 0, "60 60 0s"},
		{"nothing is lost", two, 60, func(*restoring) {}, 0, "60 60 0s"},
		{"more was used meanwhile", two, 60, func(r *restoring) { r.take(20) }, 0, "80 80 0s"},
		{"all is lost, and some used meanwhile", two, 60, func(r *restoring) { r.flush(); r.take(20) }, 0, "60 60 0s"},
		{"more than 32 bits", monthly, 1 << 39, (*restoring).flush, 0, fmt.Sprint(int64(1<<39), " 0s")},
		{"a smooth quota", smooth, 60, (*restoring).flush, 0, "60 0s"},
		{"a smooth quota, and some used meanwhile", smooth, 60, func(r *restoring) { r.flush(); r.take(20) }, 0, "60 0s"},
		{"a smooth quota, and more used meanwhile", smooth, 60, func(r *restoring) { r.take(20) }, 0, "80 0s"},
		{"given back", two, 60, func(r *restoring) { r.giveBack(20, "") }, 20, "40 40 0s"},
		{"given back twice, and another subject", two, 60, func(r *restoring) {
			r.giveBack(20, "id")
			r.giveBack(20, "id")
			r.giveBack(5, "")
			r.subject = "another"
			r.giveBack(5, "")
			r.subject = "a"
		}, 25, "35 35 0s"},
		{"lost, and some given back meanwhile", two, 60, func(r *restoring) { r.flush(); r.take(3); r.giveBack(2, "") }, 2, "58 58 0s"},
		{"the same of a smooth quota", smooth, 60, func(r *restoring) { r.flush(); r.take(3); r.giveBack(2, "") }, 2, "58 0s"},
		{"lost, and given back before anything was used", two, 60, func(r *restoring) {
			r.flush()
			r.giveBack(20, "")
			r.pass(time.Minute)
		}, 20, "40 40 0s"},
		{"as much given back as was used", smooth, 60, func(r *restoring) { r.giveBack(60, "") }, 60, "0 0s"},
		{"reset", two, 60, (*restoring).reset, all, "0 0 0s"},
		{"a window has ended", two, 60, func(r *restoring) { r.flush(); r.pass(time.Hour) }, 0, "0 60 0s"},
		{"a window ends at another time", two, 60, func(r *restoring) {
			r.flush()
			r.take(1)
			r.known.States[0].Reset += 3600
		}, 0, "1 60 0s"},
		{"a quota is left out", two, 60, func(r *restoring) { r.flush(); r.known.States[1].Reset = 0 }, 0, "60 0 0s"},
		{"a ban is lost", two, 0, func(r *restoring) { r.ban(time.Hour); r.flush() }, 0, "0 0 1h0m0s spam"},
		{"a ban is lost, and a shorter one begun", two, 60, func(r *restoring) {
			r.ban(time.Hour)
			r.flush()
			r.ban(time.Minute)
		}, 0, "60 60 1m0s spam"},
		{"a ban is repeated", two, 60, func(r *restoring) { r.ban(time.Hour); r.ban(time.Hour) }, 0, "60 60 1h0m0s spam"},
		{"a ban was ended", two, 60, func(r *restoring) { r.ban(time.Hour); r.unban() }, all, "60 60 0s"},
		{"a ban was ended, and more given back", two, 60, func(r *restoring) { r.ban(time.Hour); r.unban(); r.giveBack(5, "") }, all, "55 55 0s"},
		{"a ban was made shorter, and has ended", two, 60, func(r *restoring) {
			r.ban(2 * time.Minute)
			r.ban(2*time.Minute - time.Second)
			r.pass(2*time.Minute - time.Second)
		}, all, "60 60 0s"},
		{"a ban was made longer", two, 60, func(r *restoring) {
			r.ban(time.Hour)
			must(r, r.l.Ban(ctx, r.subject, 2*time.Hour, ""))
		}, 0, "60 60 2h0m0s by hand"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, c := mini(t)
			r := &restoring{T: t, m: m, l: newLimiter(t, c), subject: "a", plan: test.plan, now: time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC)}
			r.pass(0)
			if test.cost > 0 {
				r.take(test.cost)
			}
			r.known = r.peek()
			test.then(r)
			for range 2 { // the second time changes nothing
				given, err := r.l.Restore(ctx, r.subject, &r.known)
				if err != nil || given != test.given {
					t.Errorf("%d given back, %v, want %d", given, err, test.given)
				}
			}
			d, got := r.peek(), ""
			for i := range engine.Of(test.plan).Len() {
				got += fmt.Sprint(cmp.Or(engine.Of(test.plan).Quota(i).Burst(), engine.Of(test.plan).Quota(i).Limit)-d.States[i].Remaining, " ")
			}
			if got += max(time.Unix(d.BanEnds, 0).Sub(r.now), 0).String(); d.BanEnds > 0 {
				got += " " + d.BanReason()
			}
			if got != test.want {
				t.Errorf("used and banned for %s, want %s", got, test.want)
			}
			for _, key := range m.Keys() {
				if !strings.ContainsAny(test.want, "123456789") && !strings.Contains(key, "!") {
					t.Errorf("Redis has %q, want nothing but a note", key)
				}
			}
			if bans, err := r.l.Bans(ctx); err != nil || len(bans) > 0 != (d.BanEnds > 0) {
				t.Errorf("bans listed: %v, error %v", bans, err)
			}
		})
	}
}

// A restoring is a subject whose usage was known.
type restoring struct {
	*testing.T
	m       *miniredis.Miniredis
	l       *redislimit.Limiter
	subject string
	plan    *ratelimit.Plan
	now     time.Time
	known   ratelimit.Decision
	charged ratelimit.Decision
}

func (r *restoring) check(err error) {
	r.Helper()
	must(r, err)
}

func (r *restoring) flush() { r.m.FlushAll() }
func (r *restoring) reset() { r.check(r.l.Reset(ctx, r.subject)) }
func (r *restoring) unban() { r.check(second(r.l.Unban(ctx, r.subject))) }

func (r *restoring) pass(d time.Duration) {
	r.now = r.now.Add(d)
	r.m.SetTime(r.now)
	r.m.FastForward(d)
}

func (r *restoring) peek() ratelimit.Decision {
	d, err := r.l.Peek(ctx, r.subject, r.plan)
	r.check(err)
	return d
}

func (r *restoring) take(cost int64) {
	d, err := r.l.Take(ctx, r.subject, r.plan, cost)
	r.check(err)
	r.charged = d
}

func (r *restoring) giveBack(units int64, id string) {
	d := r.charged
	r.check(r.l.Adjust(ctx, r.subject, &d, d.Cost-units, id))
}

func (r *restoring) ban(length time.Duration) {
	r.check(r.l.Ban(ctx, r.subject, length, "spam"))
	if d := r.peek(); r.known.BanEnds == 0 {
		r.known.BanEnds, r.known.Receipt.BanReason = d.BanEnds, d.Receipt.BanReason
	}
}

// A note lasts as long as what it is about, also if a later one does not.
func TestNoteLasts(t *testing.T) {
	m, c := mini(t)
	r := &restoring{T: t, m: m, l: newLimiter(t, c), subject: "a", plan: lasting(10), now: time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)}
	r.pass(0)
	r.ban(48 * time.Hour)
	r.unban()
	r.plan = ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerDay(10))
	r.take(2)
	r.giveBack(1, "")
	for _, key := range m.Keys() {
		if left := m.TTL(key); strings.Contains(key, "!") && left != 48*time.Hour+5*time.Second {
			t.Errorf("the note lasts %v, want as long as the ban would have, and five seconds", left)
		}
	}
}
