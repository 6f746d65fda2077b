package ratelimittest

import (
	"context"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
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
func (b *bench) provoke(p *ratelimit.Plan) ratelimit.Decision {
	b.Helper()
	for b.take(p).Outcome == allowed {
	}
	b.advance(3 * time.Second)
	for range 3 {
		if d := b.take(p); d.Outcome != limited {
			b.Fatalf("a strike that brings no ban yet: got %v", d.Outcome)
		}
	}
	return b.take(p)
}

func testBan(b *bench) {
	p := strict(penalty())
	b.take(p)
	for i, want := range []int{3, 2, 1, 0} {
		if d := b.take(p); d.Outcome != limited || d.StrikesLeft != want {
			b.Fatalf("limited request %d: got %v with %d strikes left, want limited with %d", i+1, d.Outcome, d.StrikesLeft, want)
		}
		b.advance(2 * time.Second)
	}
	d := b.take(p)
	b.want("one strike too many", d, banned, 0)
	ends := b.now.Add(time.Minute + time.Second - 1).Truncate(time.Second)
	if d.BanEnds != ends.Unix() {
		b.Errorf("the ban ends at %d, want %d", d.BanEnds, ends.Unix())
	}
	if hour := time.Unix(d.States[0].Reset, 0).Sub(b.now); d.RetryAfter != hour {
		b.Errorf("RetryAfter is %v, want %v: the hour outlasts the ban", d.RetryAfter, hour)
	}
	b.advance(50 * time.Second)
	for range 5 {
		if again := b.take(p); again.BanEnds != d.BanEnds {
			b.Fatalf("a request during the ban moved its end from %d to %d", d.BanEnds, again.BanEnds)
		}
	}
	b.engine.Set(ends.Add(-time.Millisecond))
	b.want("just before the ban ends", b.take(p), banned, 0)
	b.engine.Set(ends)
	b.want("when the ban ends the quota is still used up", b.take(p), limited, 0)
}

// testBanClockBack holds that a step back of the clock makes no ban longer.
func testBanClockBack(b *bench) {
	p := strict(penalty())
	for _, step := range []time.Duration{time.Second, 30 * time.Second, time.Hour, 25 * time.Hour} {
		d := b.provoke(p)
		b.advance(10 * time.Second)
		b.want("during the ban", b.take(p), banned, 0)
		b.advance(-step)
		length := time.Unix(d.BanEnds, 0).Sub(b.now.Add(step - 10*time.Second)) // as it began
		d = b.take(p)
		b.want("after the clock stepped back", d, banned, 0)
		left := time.Unix(d.BanEnds, 0).Sub(b.now)
		if left > length+time.Second {
			b.Errorf("back by %v: the ban of %v lasts %v more", step, length, left)
		}
		for range 3 {
			b.advance(left / 4)
			if again := b.take(p); again.BanEnds != d.BanEnds {
				b.Fatalf("back by %v: the end of the ban moves from %d to %d", step, d.BanEnds, again.BanEnds)
			}
		}
		b.engine.Set(time.Unix(d.BanEnds, 0))
		b.now = time.Unix(d.BanEnds, 0)
		if d := b.take(p); d.Outcome == banned {
			b.Errorf("back by %v: the ban goes on after the time that Retry-After gave", step)
		}
		b.advance(48 * time.Hour)
	}
}

// testBanStaysOver holds that a ban which was over, when a later request was a
// strike, does not come back when the clock steps back.
func testBanStaysOver(b *bench) {
	p := strict(penalty())
	d := b.provoke(p)
	b.now = time.Unix(d.BanEnds, 0)
	b.advance(time.Second)
	b.want("the ban is over, and the grace begins", b.take(p), limited, 0)
	b.advance(2 * time.Second)
	if d := b.take(p); d.Outcome != limited || d.StrikesLeft != 2 {
		b.Fatalf("the first strike after the ban: got %v with %d strikes left, want limited with 2", d.Outcome, d.StrikesLeft)
	}
	b.advance(-30 * time.Second)
	b.want("the clock stepped back into the ban", b.take(p), limited, 0)
}

// testGraceOnce holds that a window has one grace, even if the last ban, with all
// that it left, is forgotten in the middle of the window.
func testGraceOnce(b *bench) {
	p := strict(penalty())
	b.now = time.Date(2026, time.March, 1, 23, 50, 0, 0, time.UTC)
	b.engine.Set(b.now)
	b.provoke(p) // at 23:50:03, for a minute, which is forgiven three hours later
	b.now = time.Date(2026, time.March, 2, 2, 50, 0, 0, time.UTC)
	b.engine.Set(b.now)
	b.want("the day and the hour are new", b.take(p), allowed, 0)
	if d := b.take(p); d.Outcome != limited || d.StrikesLeft != 3 {
		b.Fatalf("the grace begins: got %v with %d strikes left, want limited with 3", d.Outcome, d.StrikesLeft)
	}
	b.advance(2 * time.Minute)
	if d := b.take(p); d.Outcome != limited || d.StrikesLeft != 2 {
		b.Errorf("two minutes after the grace: got %v with %d strikes left, want limited with 2", d.Outcome, d.StrikesLeft)
	}
}

// testAdmissionClears holds that an admitted request clears the strikes.
func testAdmissionClears(b *bench) {
	p := strict(penalty())
	for range 4 {
		b.take(p)
		for range 3 {
			b.advance(3 * time.Second)
			if d := b.take(p); d.Outcome == banned {
				b.Fatal("banned for as many strikes as bring no ban")
			}
		}
		b.advance(time.Hour)
		if d := b.take(p); !d.Allowed() || d.StrikesLeft != 3 {
			b.Fatalf("an admitted request left %d strikes, want all 3", d.StrikesLeft)
		}
	}
}

func testGrace(b *bench) {
	p := strict(penalty())
	b.take(p)
	for range 50 {
		b.want("in flight when the first was limited", b.take(p), limited, 0)
	}
	b.advance(1999 * time.Millisecond)
	if d := b.take(p); d.StrikesLeft != 3 {
		b.Errorf("within the grace: %d strikes left, want 3", d.StrikesLeft)
	}
	b.advance(time.Millisecond)
	if d := b.take(p); d.StrikesLeft != 2 {
		b.Errorf("after the grace: %d strikes left, want 2", d.StrikesLeft)
	}
}

func testGrowth(b *bench) {
	p := strict(penalty())
	length := func(d ratelimit.Decision) time.Duration {
		return time.Unix(d.BanEnds, 0).Sub(b.now).Truncate(time.Second)
	}
	for i, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute} {
		if d := b.provoke(p); d.Outcome != banned || length(d) != want {
			b.Fatalf("ban %d: %v for %v, want %v", i+1, d.Outcome, length(d), want)
		}
		b.advance(time.Hour)
	}
	b.advance(9 * time.Hour) // with the hour before, three times the quiet time of three hours
	if d := b.provoke(p); length(d) != 4*time.Minute {
		b.Errorf("ban after three steps were forgiven: %v, want 4m", length(d))
	}
}

func testBanByHand(b *bench) {
	banner, ok := b.engine.Limiter.(ratelimit.Banner)
	if !ok {
		b.Skip("skipped: the engine is no Banner")
	}
	ctx := context.Background()
	p := plan(ratelimit.PerDay(10))
	b.take(p)
	for _, name := range []string{"a", "never seen"} {
		if err := banner.Ban(ctx, name, time.Hour); err != nil {
			b.Fatal(err)
		}
		b.want("banned by hand", b.takeN(name, p, 1), banned, 0)
	}
	bans, err := banner.Bans(ctx)
	if err != nil || len(bans) != 2 {
		b.Fatalf("Bans: got %v, %v, want two", bans, err)
	}
	for _, ban := range bans {
		if ban.Subject != "a" && ban.Subject != "never seen" || ban.Level != 0 {
			b.Errorf("Bans: got %+v", ban)
		}
	}
	if unbanned, err := banner.Unban(ctx, "a"); err != nil || !unbanned {
		b.Errorf("Unban: got %v, %v, want true", unbanned, err)
	}
	if unbanned, err := banner.Unban(ctx, "a"); err != nil || unbanned {
		b.Errorf("Unban again: got %v, %v, want false", unbanned, err)
	}
	b.want("after the subject was unbanned the usage is as before", b.take(p), allowed, 8)
	if bans, _ := banner.Bans(ctx); len(bans) != 1 {
		b.Errorf("Bans after one was unbanned: got %v", bans)
	}
	for _, length := range []time.Duration{0, -time.Second, ratelimit.MaxWindow + 1} {
		if err := banner.Ban(ctx, "b", length); err == nil {
			b.Errorf("a ban of %v was taken", length)
		}
	}
}
