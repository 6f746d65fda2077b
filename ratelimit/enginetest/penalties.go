package enginetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// strict allows one request an hour.
func strict(p ratelimit.Penalty) *ratelimit.Plan {
	return ratelimit.MustPlan("strict", p, ratelimit.PerHour(1), ratelimit.PerDay(1000))
}

func penalty() ratelimit.Penalty {
	return ratelimit.Penalty{
		Strikes: 3, Grace: 2 * time.Second,
		Ban: time.Minute, Growth: 2, Max: 5 * time.Minute, Forgive: 3 * time.Hour,
	}
}

// provoke uses up the hour and goes on until a ban starts. It returns the
// decision that started it.
func (e *engineTest) provoke(p *ratelimit.Plan) ratelimit.Decision {
	e.Helper()
	for e.take(p).Outcome == allowed {
	}
	e.advance(3 * time.Second)
	for range 3 {
		if d := e.take(p); d.Outcome != limited {
			e.Fatalf("a strike that must not start a ban: got %v, want limited", d.Outcome)
		}
	}
	return e.take(p)
}

func testBanClockBack(e *engineTest) {
	p := strict(penalty())
	for _, step := range []time.Duration{time.Second, 30 * time.Second, time.Hour, 25 * time.Hour} {
		d := e.provoke(p)
		e.advance(10 * time.Second)
		e.want("during the ban", e.take(p), banned, 0)
		e.advance(-step)
		length := time.Unix(d.BanEnds, 0).Sub(e.now.Add(step - 10*time.Second)) // as it began
		d = e.take(p)
		e.want("after the clock stepped back", d, banned, 0)
		left := time.Unix(d.BanEnds, 0).Sub(e.now)
		if left > length+time.Second {
			e.Errorf("back by %v: the ban of %v now lasts %v more, want at most its own length", step, length, left)
		}
		for range 3 {
			e.advance(left / 4)
			if again := e.take(p); again.BanEnds != d.BanEnds {
				e.Fatalf("back by %v: the end of the ban moves from %d to %d", step, d.BanEnds, again.BanEnds)
			}
		}
		e.set(time.Unix(d.BanEnds, 0))
		if d := e.take(p); d.Outcome == banned {
			e.Errorf("back by %v: the ban goes on after its end", step)
		}
		e.advance(48 * time.Hour)
	}
}

func testBanByHand(e *engineTest) {
	banner, p := capability[engine.Banner](e), plan(ratelimit.PerDay(10))
	e.take(p)
	longest := strings.Repeat("é", 100)
	for _, row := range []struct{ name, reason, want string }{
		{"never seen", "", "by hand"}, {"a", "spam", "spam"}, {"a", longest, longest}, {"a", "strikes", "strikes"},
		{"a", "a: \"b\", 100 %", "a: \"b\", 100 %"}, {"a", "", "by hand"},
	} {
		if err := banner.Ban(ctx, row.name, time.Hour, row.reason); err != nil {
			e.Fatal(err)
		}
		for range 3 {
			d := e.takeN(row.name, p, 1)
			e.want("banned by hand", d, banned, 0)
			e.wantStruck("banned by hand", d, false)
			if d.BanReason() != row.want {
				e.Errorf("banned for %q: BanReason is %q, want %q", row.reason, d.BanReason(), row.want)
			}
		}
	}
	bans, err := banner.Bans(ctx)
	if err != nil || len(bans) != 2 {
		e.Fatalf("Bans: got %v, %v, want two", bans, err)
	}
	for _, ban := range bans {
		if ban.Subject != "a" && ban.Subject != "never seen" || ban.Level != 0 || ban.Reason != "by hand" {
			e.Errorf("Bans: got %+v, want the two subjects with level 0, by hand", ban)
		}
	}
	e.unban(banner, p)
	e.wrongBans(banner, longest)
}

// unban ends the ban of "a", which has used a unit.
func (e *engineTest) unban(banner engine.Banner, p *ratelimit.Plan) {
	if unbanned, err := banner.Unban(ctx, "a"); err != nil || !unbanned {
		e.Errorf("Unban: got %v, %v, want true", unbanned, err)
	}
	if unbanned, err := banner.Unban(ctx, "a"); err != nil || unbanned {
		e.Errorf("Unban again: got %v, %v, want false", unbanned, err)
	}
	e.want("after the subject was unbanned the usage is as before", e.take(p), allowed, 8)
	if bans, _ := banner.Bans(ctx); len(bans) != 1 {
		e.Errorf("Bans after one was unbanned: got %v, want one", bans)
	}
}

// wrongBans fails unless bans of a wrong length, or with a wrong reason, are refused.
func (e *engineTest) wrongBans(banner engine.Banner, longest string) {
	for _, length := range []time.Duration{0, -time.Second, fixedwindow.MaxLength + 1} {
		if err := banner.Ban(ctx, "b", length, ""); err == nil {
			e.Errorf("Ban accepts a length of %v, want an error", length)
		}
	}
	for _, reason := range []string{longest + "x", "a\n", "a\tb", "\xff", " a", "a "} {
		e.wantInvalid(fmt.Sprintf("Ban with the reason %q", reason), banner.Ban(ctx, "b", time.Hour, reason), ratelimit.ErrInvalid)
	}
}

// wantStruck fails unless the decision says whether it was a strike.
func (e *engineTest) wantStruck(step string, d ratelimit.Decision, struck bool) {
	e.Helper()
	if d.Struck != struck {
		e.Fatalf("%s: got Struck %v for a request that is %v, want %v", step, d.Struck, d.Outcome, struck)
	}
}

// testBackoff has clients that double their pauses, or wait for Decay between their
// requests, while a quota is exhausted for a long time.
func testBackoff(e *engineTest) {
	r := rand.New(rand.NewPCG(1, 2))
	day := func(p ratelimit.Penalty) *ratelimit.Plan {
		return ratelimit.MustPlan("exhausted", p, ratelimit.PerMinute(60), ratelimit.Quota{Limit: 1, Window: fixedwindow.MaxLength})
	}
	double := func(first, longest time.Duration) func() time.Duration {
		pause := first / 2
		return func() time.Duration {
			pause = min(2*pause, longest)
			return pause
		}
	}
	standard := ratelimit.DefaultPenalty()
	e.neverBanned(day(standard), "doubling from 1s", double(time.Second, time.Hour))
	e.neverBanned(day(standard), "doubling from 1s to 60s", double(time.Second, time.Minute))
	e.neverBanned(day(standard), "doubling from 1ms", double(2*time.Millisecond, time.Hour))
	e.neverBanned(day(standard), "asking every 10s", func() time.Duration { return 10 * time.Second })
	for range 40 {
		p := penalty()
		p.Decay = time.Duration(1+r.IntN(120)) * time.Second
		p.Grace = time.Duration(1+r.IntN(5000)) * time.Millisecond
		first := time.Duration(1 + r.Int64N(10_000_000_000))
		p.Strikes = 2 + max(int(math.Ceil(math.Log2(float64(p.Decay)/float64(max(p.Grace, first))))), 0)
		longest := p.Decay + time.Duration(r.IntN(3600))*time.Second
		e.neverBanned(day(p), fmt.Sprintf("doubling from %v to %v with %+v", first, longest, p), double(first, longest))
		p.Strikes = 1 + r.IntN(3)
		e.neverBanned(day(p), fmt.Sprintf("waiting at least Decay with %+v", p), func() time.Duration {
			return p.Decay + time.Duration(r.Int64N(2_000_000_000))
		})
	}
}

// testWarning has clients with any strikes send as many further requests as are safe, at
// any pace, and then one more than that in quick succession.
func testWarning(e *engineTest) {
	r := rand.New(rand.NewPCG(3, 4))
	p := strict(penalty())
	pause := func() { e.advance(time.Duration(r.IntN(2)*r.IntN(15_000)) * time.Millisecond) }
	for i := range 100 {
		e.now = start.Truncate(24 * time.Hour).Add(24 * time.Hour)
		e.engine.Set(e.now)
		client := fmt.Sprint("client ", i)
		e.takeN(client, p, 1)
		d := e.takeN(client, p, 1)
		for range r.IntN(8) {
			if pause(); d.StrikesLeft > 0 {
				d = e.takeN(client, p, 1)
			}
		}
		for range d.StrikesLeft {
			pause()
			e.want("no more requests than are safe", e.takeN(client, p, 1), limited, 0)
		}
		e.advance(12 * time.Second) // the grace is over, and a strike has decayed
		d = e.takeN(client, p, 1)
		for range d.StrikesLeft {
			e.want("no more than are safe in quick succession", e.takeN(client, p, 1), limited, 0)
		}
		d = e.takeN(client, p, 1)
		e.want("one more than that", d, banned, 0)
		e.wantStruck("one more than that", d, true)
	}
}

// neverBanned sends 60 requests of one client, with pauses between them, to an
// exhausted quota.
func (e *engineTest) neverBanned(p *ratelimit.Plan, client string, pause func() time.Duration) {
	e.Helper()
	e.takeN(client, p, 1)
	for i := range 60 {
		if d := e.takeN(client, p, 1); d.Outcome != limited {
			e.Fatalf("a client %s is %v at request %d, want limited", client, d.Outcome, i+1)
		}
		e.advance(pause())
	}
}
