package failover_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A forgetful primary can lose what it has counted, and notes what was given back, as the
// engine of redislimit does.
type forgetful struct {
	*shared
	given    map[string]int64
	restores int
	refuses  error         // to restore
	hold     chan struct{} // the next answer waits for it
	ahead    int64         // its clock, seconds
}

func (f *forgetful) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	hold := f.hold
	f.hold = nil
	d, err := f.shared.Take(ctx, subject, plan, cost)
	if hold != nil {
		<-hold
	}
	d.States[0].Reset += f.ahead
	return d, err
}

func (f *forgetful) TakeAll(ctx context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	return engine.TakeInOrder(ctx, f, charges, decisions)
}

func (f *forgetful) Adjust(ctx context.Context, subject string, d *ratelimit.Decision, units int64, id string) error {
	f.given[subject] += max(d.Cost-units, 0)
	return f.shared.Adjust(ctx, subject, d, units, id)
}

func (f *forgetful) Reset(ctx context.Context, subject string) error {
	f.given[subject] = fixedwindow.MaxUnits
	return f.shared.Reset(ctx, subject)
}

func (f *forgetful) Unban(ctx context.Context, subject string) (bool, error) {
	f.given[subject] = fixedwindow.MaxUnits
	return f.shared.Unban(ctx, subject)
}

func (f *forgetful) Restore(ctx context.Context, subject string, known *ratelimit.Decision) (int64, error) {
	f.restores++
	if f.refuses != nil {
		return 0, f.refuses
	}
	here, err := f.Peek(ctx, subject, known.Plan)
	if err != nil {
		return 0, err
	}
	given := f.given[subject]
	for i := range engine.Of(known.Plan).Len() {
		q := engine.Of(known.Plan).Quota(i)
		if most := cmp.Or(q.Burst(), q.Limit); known.States[i].Remaining > most {
			return 0, fmt.Errorf("%w: %d of %d remain", ratelimit.ErrInvalid, known.States[i].Remaining, most)
		}
		was := ratelimit.Decision{Outcome: ratelimit.Allowed, Plan: known.Plan, Time: known.Time}
		was.States[i] = known.States[i]
		missing := here.States[i].Remaining - known.States[i].Remaining - given
		if missing > 0 && (engine.Of(known.Plan).Kind(i) < 0 || was.States[i].Reset == here.States[i].Reset) {
			err = errors.Join(err, f.engine.Adjust(ctx, subject, &was, missing, ""))
		}
	}
	if left := time.Until(time.Unix(known.BanEnds, 0)); left > 0 && here.BanEnds == 0 && given < fixedwindow.MaxUnits {
		err = errors.Join(err, f.engine.Ban(ctx, subject, left, known.BanReason()))
	}
	return given, err
}

// Processes share a primary.
type processes struct {
	*testing.T
	primary *forgetful
	all     []*failover.Limiter
	local   []*memory.Limiter
}

func (p *processes) take(process int, subject string, plan *ratelimit.Plan, cost int64) ratelimit.Decision {
	p.Helper()
	d, err := p.all[process].Take(ctx, subject, plan, cost)
	if err != nil {
		p.Fatalf("Take of process %d: %v", process, err)
	}
	return d
}

// giveBack has a process adjust what d cost.
func (p *processes) giveBack(process int, d ratelimit.Decision, units int64) {
	p.Helper()
	must(p, p.all[process].Adjust(ctx, "a", &d, units, ""))
}

// forget makes the primary lose all that it has counted and noted.
func (p *processes) forget() {
	p.primary.engine, p.primary.given = newEngine(p.T), map[string]int64{}
}

// restored checks how often the primary was asked to restore something.
func (p *processes) restored(want int) {
	p.Helper()
	if p.primary.restores != want {
		p.Errorf("the primary was asked to restore %d times, want %d", p.primary.restores, want)
	}
}

func TestLoss(t *testing.T) {
	two := ratelimit.MustPlan("two", ratelimit.Penalty{}, ratelimit.PerHour(100), ratelimit.PerDay(1000))
	smooth := ratelimit.MustPlan("smooth", ratelimit.Penalty{}, ratelimit.PerDay(1000).Smooth(1000))
	fast := ratelimit.MustPlan("fast", ratelimit.Penalty{}, ratelimit.PerSecond(1000).Smooth(100))
	mixed := ratelimit.MustPlan("mixed", ratelimit.Penalty{}, ratelimit.PerSecond(10_000).Smooth(100), ratelimit.PerDay(100))
	for _, test := range []struct {
		name string
		run  func(p *processes)
		plan *ratelimit.Plan
		used string // of a in the end, at the primary
	}{
		{"what one knows is added again, and the request counted once", func(p *processes) {
			p.take(0, "a", daily, 600)
			p.forget()
			p.take(0, "a", daily, 1)
			p.take(0, "a", daily, 1)
			p.restored(1)
		}, daily, "602/24h0m0s"},
		{"a subject that was used up is denied", func(p *processes) {
			p.take(0, "a", daily, 1000)
			p.forget()
			if d := p.take(0, "a", daily, 1); d.Outcome != ratelimit.Limited {
				p.Errorf("got %v, want limited", d.Outcome)
			}
		}, daily, "1000/24h0m0s"},
		{"a request that costs as much as was lost", func(p *processes) {
			p.take(0, "a", daily, 600)
			p.forget()
			if d := p.take(0, "a", daily, 600); d.Outcome != ratelimit.Limited {
				p.Errorf("got %v, want limited", d.Outcome)
			}
		}, daily, "600/24h0m0s"},
		{"several add what they know once, those that know less first", func(p *processes) {
			p.take(0, "a", daily, 500)
			p.take(1, "a", daily, 50)
			p.take(2, "a", daily, 50)
			p.forget()
			for i := range 3 {
				p.take(i, "a", daily, 10)
			}
		}, daily, "610/24h0m0s"}, // 500+10; then 550, which knows of the 510; then 600
		{"a part is lost", func(p *processes) {
			p.take(0, "a", daily, 700)
			p.primary.engine = newEngine(p.T)
			p.take(1, "a", daily, 600)
			p.take(0, "a", daily, 1)
		}, daily, "701/24h0m0s"},
		{"it is lost twice", func(p *processes) {
			p.take(0, "a", daily, 600)
			for range 2 {
				p.forget()
				p.take(0, "a", daily, 1)
			}
		}, daily, "602/24h0m0s"},
		{"a look finds the loss too", func(p *processes) {
			p.take(0, "a", daily, 600)
			p.forget()
			if d, err := p.all[0].Peek(ctx, "a", daily); err != nil || d.Remaining() != 400 {
				p.Errorf("%d remaining, %v, want 400", d.Remaining(), err)
			}
			_ = second(p.all[0].Peek(ctx, "a", daily))
			p.restored(1)
		}, daily, "600/24h0m0s"},
		{"of two windows both are restored", func(p *processes) {
			p.take(0, "a", two, 60)
			p.forget()
			p.take(0, "a", two, 1)
		}, two, "61/1h0m0s 61/24h0m0s"},
		{"of two quotas one was full again", func(p *processes) {
			p.take(0, "a", mixed, 60)
			p.forget()
			p.primary.set(slow(10 * time.Millisecond))
			p.take(0, "a", mixed, 1)
		}, mixed, "9901/1s 61/24h0m0s"},
		{"a window that has ended is over, and in the next one the request counts twice", func(p *processes) {
			p.take(0, "a", two, 60)
			p.forget()
			time.Sleep(time.Hour)
			p.take(0, "a", two, 1)
		}, two, "2/1h0m0s 61/24h0m0s"},
		{"another window is open there", func(p *processes) {
			p.take(0, "a", daily, 600)
			p.forget()
			p.primary.ahead = 24 * 60 * 60
			p.take(0, "a", daily, 1)
			p.restored(0)
		}, daily, "1/24h0m0s"},
		{"less than half is lost", func(p *processes) {
			p.take(0, "a", daily, 499)
			p.forget()
			p.take(0, "a", daily, 1)
			p.restored(0)
		}, daily, "1/24h0m0s"},
		{"of several charges the others count twice", func(p *processes) {
			p.take(0, "a", daily, 600)
			p.forget()
			charges := []ratelimit.Charge{{Subject: "b", Plan: daily, Cost: 1}, {Subject: "a", Plan: daily, Cost: 1}}
			if err := p.all[0].TakeAll(ctx, charges, make([]ratelimit.Decision, 2)); err != nil {
				p.Error(err)
			}
			if got := used(p.T, p.primary.engine, "b", daily); got != "2/24h0m0s" {
				p.Errorf("the other subject has used %s, want two", got)
			}
		}, daily, "601/24h0m0s"},
		{"a primary that cannot restore decides nothing", func(p *processes) {
			p.take(0, "a", daily, 1000)
			p.forget()
			p.primary.refuses = errDown
			if d := p.take(0, "a", daily, 1); d.Outcome != ratelimit.Limited {
				p.Errorf("got %v, want limited", d.Outcome)
			}
		}, daily, "1/24h0m0s"},
		{"what this process gave back is no loss", func(p *processes) {
			p.giveBack(0, p.take(0, "a", daily, 600), 100)
			p.take(0, "a", daily, 1)
			p.restored(0)
		}, daily, "101/24h0m0s"},
		{"what another gave back is no loss", func(p *processes) {
			p.giveBack(1, p.take(0, "a", daily, 900), 600)
			p.take(0, "a", daily, 1)
			p.take(0, "a", daily, 1)
			p.restored(1) // it said that it had lost nothing
			p.forget()
			p.take(0, "a", daily, 1)
		}, daily, "603/24h0m0s"},
		{"as much was given back as the next request costs", func(p *processes) {
			p.giveBack(1, p.take(0, "a", daily, 900), 899)
			p.take(0, "a", daily, 1)
			p.forget()
			p.take(0, "a", daily, 1)
		}, daily, "901/24h0m0s"},
		{"what was given back after the loss hides it from nobody", func(p *processes) {
			p.take(0, "a", daily, 900)
			p.forget()
			p.giveBack(1, p.take(1, "a", daily, 2), 1)
			for range 3 {
				p.take(0, "a", daily, 1)
			}
			p.restored(1)
		}, daily, "902/24h0m0s"},
		{"a reset elsewhere is no loss", func(p *processes) {
			p.take(0, "a", daily, 900)
			if err := p.all[1].Reset(ctx, "a"); err != nil {
				p.Error(err)
			}
			p.take(0, "a", daily, 1)
			p.forget() // what is known of it by now is one
			p.take(0, "a", daily, 1)
			p.restored(1)
		}, daily, "1/24h0m0s"},
		{"usage that is not merged yet is no loss", func(p *processes) {
			p.take(0, "a", daily, 500)
			p.primary.set(down)
			p.take(0, "a", daily, 100)
			p.primary.set(nil)
			p.take(0, "a", daily, 1)
			p.restored(0)
		}, daily, "601/24h0m0s"},
		{"a smooth quota", func(p *processes) {
			p.take(0, "a", smooth, 900)
			p.forget()
			p.take(0, "a", smooth, 50)
			if d := p.take(0, "a", smooth, 60); d.Outcome != ratelimit.Limited {
				p.Errorf("got %v, want limited", d.Outcome)
			}
		}, smooth, "950/24h0m0s"},
		{"of a smooth quota, one unit is rounding, and two are a loss", func(p *processes) {
			p.take(0, "a", smooth, 500)
			for restores, used := range []int64{498, 497} {
				p.forget()
				p.take(1, "a", smooth, used)
				p.take(0, "a", smooth, 1)
				p.restored(restores)
			}
		}, smooth, "501/24h0m0s"},
		{"a smooth quota that fills up while an answer, and then a request, takes long", func(p *processes) {
			hold := make(chan struct{})
			p.primary.hold = hold
			time.AfterFunc(20*time.Millisecond, func() { close(hold) })
			p.take(0, "a", fast, 90)
			p.take(0, "a", fast, 1)
			p.primary.set(slow(20 * time.Millisecond))
			p.take(0, "a", fast, 1)
			p.restored(0)
		}, fast, "953/1s"}, // 53 of 100, rounded
	} {
		t.Run(test.name, func(t *testing.T) {
			runProcesses(t, func(p *processes) {
				test.run(p)
				if got := used(p.T, p.primary.engine, "a", test.plan); got != test.used {
					p.Errorf("the primary has counted %s, want %s", got, test.used)
				}
			})
		})
	}
}

// An answer that comes late is older than what is known, and is no loss.
func TestLateAnswerIsNoLoss(t *testing.T) {
	runProcesses(t, func(p *processes) {
		hold, late := make(chan struct{}), make(chan ratelimit.Decision)
		p.primary.hold = hold
		go func() { late <- p.take(0, "a", daily, 500) }()
		synctest.Wait()
		p.take(0, "a", daily, 100)
		close(hold)
		if d := <-late; d.Remaining() != 500 {
			p.Errorf("%d remaining, want 500", d.Remaining())
		}
		p.restored(0)
	})
}

// runProcesses runs a test with three processes in a bubble of its own time.
func runProcesses(t *testing.T, test func(*processes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(12*time.Hour + 30*time.Minute + 30*time.Second)
		p := &processes{T: t, primary: &forgetful{shared: newShared(t), given: map[string]int64{}}}
		for range 3 {
			local := newEngine(t)
			l, err := failover.New(p.primary, failover.Options{Local: local, OnChange: func(error) {}})
			must(t, err)
			defer l.Close()
			p.all, p.local = append(p.all, l), append(p.local, local)
		}
		test(p)
	})
}

// A ban that is lost is in force again, unless it was ended by hand.
func TestLossOfABan(t *testing.T) {
	outcome := func(p *processes, process int) ratelimit.Outcome { return p.take(process, "a", daily, 1).Outcome }
	forget := func(p *processes) error { p.forget(); return nil }
	for _, test := range []struct {
		name string
		then func(p *processes) error
		by   int // that asks next
		want ratelimit.Outcome
		ends time.Duration // from now; 0: there is no ban
	}{
		{"it is in force", func(p *processes) error {
			outcome(p, 0)
			p.restored(0)
			return nil
		}, 0, ratelimit.Banned, time.Hour},
		{"it is lost", forget, 0, ratelimit.Banned, time.Hour},
		{"it is lost, and restored by who began it", forget, 1, ratelimit.Banned, time.Hour},
		{"it was ended by hand", func(p *processes) error { return second(p.all[1].Unban(ctx, "a")) }, 0, ratelimit.Allowed, 0},
		{"it was ended by hand, and that is lost", func(p *processes) error {
			err := second(p.all[1].Unban(ctx, "a"))
			outcome(p, 0)
			p.forget()
			return err
		}, 0, ratelimit.Allowed, 0},
		{"it is lost, with usage, and begun again for longer", func(p *processes) error {
			_, err := p.all[0].Unban(ctx, "a")
			p.take(0, "a", daily, 600)
			err = errors.Join(err, p.all[0].Ban(ctx, "a", time.Hour, ""))
			p.forget()
			err = errors.Join(err, p.all[1].Ban(ctx, "a", 2*time.Hour, "again"))
			calls := p.primary.calls.Load()
			outcome(p, 0)
			if n := p.primary.calls.Load() - calls; n != 2 {
				p.Errorf("the primary was called %d times, want twice: to decide and to restore", n)
			}
			return err
		}, 0, ratelimit.Banned, 2 * time.Hour},
		{"it is lost, and begun again for shorter", func(p *processes) error {
			p.forget()
			err := p.all[1].Ban(ctx, "a", time.Minute, "")
			outcome(p, 0)
			time.Sleep(time.Minute)
			return err
		}, 0, ratelimit.Allowed, 0},
		{"its end is near", func(p *processes) error {
			time.Sleep(time.Hour - 1500*time.Millisecond)
			p.forget()
			return nil
		}, 0, ratelimit.Allowed, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			runProcesses(t, func(p *processes) {
				must(p, p.all[1].Ban(ctx, "a", time.Hour, ""))
				outcome(p, 0)
				must(p, test.then(p))
				if got := outcome(p, test.by); got != test.want {
					p.Errorf("got %v, want %v", got, test.want)
				}
				bans, err := p.primary.engine.Bans(ctx)
				var left time.Duration
				if len(bans) > 0 {
					left = time.Until(bans[0].Ends)
				}
				if err != nil || (left-test.ends).Abs() > 2*time.Second {
					p.Errorf("a ban of %v is left, error %v, want %v", left, err, test.ends)
				}
			})
		})
	}
}

func second[T any](_ T, err error) error { return err }
