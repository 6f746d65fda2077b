package memory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

var must = testcheck.NoError

// A reason of its own is kept across a restart, unless there is no room for the name. Then it
// is still a ban by hand, also for several charges together.
func TestReasonsAreKeptWithNames(t *testing.T) {
	clock := ratelimittest.NewClock(noon)
	l := newLimiter(t, Options{MaxSubjects: 1000, Now: clock.Now})
	long := strings.Repeat("n", longestName+1)
	for _, name := range []string{"alice", long} {
		takeUnits(t, l, name, roomy, 1)
		must(t, l.Ban(ctx, name, time.Hour, "spam"))
	}
	d := disk{}
	save(t, l, d)
	for _, l := range []*Limiter{l, restart(t, l, slices.Collect(maps.Values(d)))} {
		var all [2]ratelimit.Decision
		must(t, l.TakeAll(ctx, []ratelimit.Charge{{Subject: "alice", Plan: roomy, Cost: 1}, {Subject: long, Plan: roomy, Cost: 1}}, all[:]))
		if a, b := all[0].BanReason(), all[1].BanReason(); a != "spam" || b != "by hand" {
			t.Errorf("the reasons are %q and %q, want spam and by hand", a, b)
		}
		clock.Set(noon.Add(time.Hour))
		if d, err := l.Take(ctx, "alice", roomy, 1); err != nil || !d.Allowed() || d.BanReason() != "" {
			t.Errorf("after the ban: %v for %q, %v, want no ban", d.Outcome, d.BanReason(), err)
		}
		clock.Set(noon)
	}
}

// A list of bans names every subject, also one whose ban was over for a while
// before it was banned again, or before the clock stepped back.
func TestBansHaveNames(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		for name, after := range map[string]struct {
			wait  time.Duration
			again func(*testing.T, *Limiter, *ratelimittest.Clock)
		}{
			"a clock that steps back": {2 * time.Second, func(_ *testing.T, _ *Limiter, clock *ratelimittest.Clock) { clock.Set(noon) }},
			"another ban":             {2 * time.Minute, func(t *testing.T, l *Limiter, _ *ratelimittest.Clock) { ban(t, l, "alice", time.Hour) }},
		} {
			t.Run(fmt.Sprint(name, ", restart: ", restarts), func(t *testing.T) {
				clock := ratelimittest.NewClock(noon)
				l := newLimiter(t, Options{MaxSubjects: 1000, Now: clock.Now})
				banByStrikes(t, l, "alice") // whose conduct outlives the ban
				clock.Set(noon.Add(after.wait))
				for i := range 200 {
					ban(t, l, fmt.Sprint("subject ", i), time.Minute)
				}
				if restarts {
					d := disk{}
					save(t, l, d)
					l = restart(t, l, slices.SortedFunc(maps.Values(d), func(a, b Record) int { return cmp.Compare(a.Expires, b.Expires) }))
				}
				after.again(t, l, clock)
				bans, err := l.Bans(ctx)
				if err != nil || len(bans) != 201 {
					t.Errorf("%d bans and error %v, want 201 bans", len(bans), err)
				}
				if !slices.ContainsFunc(bans, func(b engine.Ban) bool { return b.Subject == "alice" }) {
					t.Errorf("no ban of alice is listed, whose ban is in force")
				}
			})
		}
	}
}

func ban(t testing.TB, l *Limiter, subject string, length time.Duration) {
	t.Helper()
	must(t, l.Ban(ctx, subject, length, "strikes"))
}

// banByStrikes brings the subject a ban of one second, which is forgiven in an hour.
func banByStrikes(t *testing.T, l *Limiter, subject string) {
	t.Helper()
	penalty := ratelimit.Penalty{Strikes: 1, Ban: time.Second, Growth: 1, Max: time.Second, Forgive: time.Hour}
	plan := ratelimit.MustPlan("p", penalty, ratelimit.PerMinute(1))
	for range 3 {
		take(t, l, subject, plan)
	}
}

// checkBytes checks that the bytes of names are counted and bounded.
func checkBytes(t *testing.T, n *names) {
	t.Helper()
	sum := 0
	for _, b := range n.all {
		sum += len(b.name) + len(b.reason)
	}
	if n.bytes != sum || n.bytes > mostNames {
		t.Errorf("the names take %d bytes, and %d are counted, want %d at most", sum, n.bytes, mostNames)
	}
}

// The names of banned subjects take little memory, however long and however many they
// are, and none once the bans are over. A ban without a name is in force, also after a
// restart.
func TestNamesAreBounded(t *testing.T) {
	const subjects = 2000
	strict := ratelimit.Penalty{Strikes: 1, Ban: time.Minute, Growth: 1, Max: time.Minute, Forgive: 7 * 24 * time.Hour}
	plan := ratelimit.MustPlan("p", strict, ratelimit.PerMinute(1))
	for _, c := range []struct{ length, listed int }{{40, subjects}, {longestName, mostNames / longestName}, {longestName + 1, 0}, {1 << 16, 0}} {
		t.Run(fmt.Sprint(c.length), func(t *testing.T) {
			clock := ratelimittest.NewClock(noonSharp())
			l := newLimiter(t, Options{MaxSubjects: subjectsInSegment, Now: clock.Now})
			name := func(i int) string { return strings.Repeat("n", c.length-8) + fmt.Sprintf("%8d", i) }
			for i := range subjects {
				banned := name(i)
				for range 2 { // the second ban needs no second name
					if err := l.Ban(ctx, banned, time.Second, strings.Repeat("r", 200)); err != nil || l.segments[0].names.bytes > mostNames {
						t.Fatalf("%d bytes of names, error %v", l.segments[0].names.bytes, err)
					}
				}
				if kept := l.segments[0].names.all[l.key.sum(banned)]; kept != nil && unsafe.StringData(kept.name) == unsafe.StringData(banned) {
					t.Fatal("the name is kept with the string that it is a part of")
				}
				for range 4 { // of which the last two are banned, and the ban outlives that made by hand
					clock.Set(noonSharp().Add(2 * time.Second))
					l.Take(ctx, name(i), plan, 1)
				}
				clock.Set(noonSharp())
			}
			clock.Set(noonSharp().Add(3 * time.Second))
			var saved []Record
			must(t, l.Save(func(r []Record) error { saved = append(saved, r...); return nil }))
			for _, l := range []*Limiter{l, restart(t, l, saved)} {
				if bans, err := l.Bans(ctx); err != nil || len(bans) != c.listed {
					t.Errorf("%d bans are listed with error %v, want %d", len(bans), err, c.listed)
				}
				if unbanned, err := l.Unban(ctx, name(7)); err != nil || !unbanned {
					t.Errorf("unban: %v, %v, want true", unbanned, err)
				}
				checkBytes(t, &l.segments[0].names)
			}
			clock.Set(noonSharp().Add(2 * time.Minute)) // a ban is over, and its conduct is not
			takeUnits(t, l, name(8), plan, 1)
			if _, found := l.segments[0].names.all[l.key.sum(name(8))]; found {
				t.Error("a subject was admitted, and its name is still kept")
			}
			clock.Set(noonSharp().Add(14 * 24 * time.Hour))
			for i := range subjects * 2 { // which sweep
				takeUnits(t, l, fmt.Sprint(i), plan, 1)
			}
			if n := &l.segments[0].names; n.all != nil || n.bytes != 0 {
				t.Errorf("%d names of %d bytes are kept two weeks later", len(n.all), n.bytes)
			}
		})
	}
}

// After a ban the subject's usage, and not the end of the ban, says whether it can make room.
func TestRoomAfterABan(t *testing.T) {
	clock := ratelimittest.NewClock(noonSharp())
	l := newLimiter(t, Options{MaxSubjects: subjectsInSegment, Now: clock.Now})
	penalty := ratelimit.Penalty{Strikes: 1, Ban: time.Second, Growth: 1, Max: time.Second, Forgive: time.Hour}
	plan := ratelimit.MustPlan("p", penalty, ratelimit.PerSecond(1), ratelimit.PerDay(1000))
	for range 3 {
		take(t, l, "a", plan)
	}
	clock.Set(noonSharp().Add(2 * time.Second))
	if v := l.segments[0].findVictim(instant(clock.Now().UnixNano())); !v.found || v.used > 0.0011 {
		t.Errorf("got %+v, want the subject, which has used 1 of 1000 units", v)
	}
}
