//go:build unix

package redislimit_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// A badLink is a hook that loses calls of the script, and answers, and delays answers.
type badLink struct{ state, calls atomic.Int32 }

const (
	linkUp = iota
	linkLossy
	linkDown
)

func (l *badLink) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *badLink) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return l.pass([]redis.Cmder{cmd}, func() error { return next(ctx, cmd) })
	}
}

func (l *badLink) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return l.pass(cmds, func() error { return next(ctx, cmds) })
	}
}

func (l *badLink) pass(cmds []redis.Cmder, send func() error) error {
	if name := cmds[0].Name(); name != "evalsha" && name != "eval" {
		return send()
	}
	l.calls.Add(1)
	defer l.calls.Add(-1)
	state, fate := l.state.Load(), mathrand.IntN(9)
	callLost := state == linkDown || state == linkLossy && fate == 0
	if !callLost {
		if err := send(); state == linkUp || fate > 2 {
			return err
		} else if fate == 2 { // late
			time.Sleep(30 * time.Millisecond)
			return err
		}
	}
	for _, cmd := range cmds {
		cmd.SetErr(io.EOF)
	}
	return io.EOF
}

// A guarded process has an engine behind a failover.
type guarded struct {
	*failover.Limiter
	engine *redislimit.Limiter
	link   *badLink
}

// A request is held by a process of the test.
type request struct {
	*guarded
	subject, id string
	d           ratelimit.Decision
	units       int64 // that it is to be settled at
}

// Behind a failover too, whatever is lost and however long it takes, Redis counts what requests
// were settled at, and nothing of those whose processes have died.
func TestHoldsBehindFailover(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	half := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.Quota{Limit: 1 << 40, Window: fixedwindow.MaxLength / 2}, ratelimit.Quota{Limit: 1 << 40, Window: fixedwindow.MaxLength})
	plans := []*ratelimit.Plan{lasting(1 << 40), half}
	for seed := range uint64(5 * *histories) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := mathrand.New(mathrand.NewPCG(seed, 0))
			clock, direct := newScriptClock(t, time.Now()), clientOf(t, s)
			direct.AddHook(clock)
			judge := newLimiter(t, direct)
			processes := []*guarded{guard(t, s, clock, judge), guard(t, s, clock, judge)}
			want := map[string]int64{}
			var log []string
			var open []request
			take := func(p *guarded, timeout time.Duration, charges ...ratelimit.Charge) {
				id, decisions := rand.Text(), make([]ratelimit.Decision, len(charges))
				must(t, ratelimit.TakeAll(ctx, p.Hold(id, timeout), charges, decisions))
				log = append(log, fmt.Sprint("take ", charges, id))
				for i, d := range decisions {
					open = append(open, request{p, charges[i].Subject, id, d, d.Cost * int64(random.IntN(4)) / 2})
				}
			}
			settle := func(i int) {
				r := open[i]
				err := r.Adjust(ctx, r.subject, &r.d, r.units, r.id)
				log = append(log, fmt.Sprint("settle ", r.subject, " at ", r.units, " ", r.id, " ", err))
				if err == nil {
					want[r.subject] += r.units
					open = slices.Delete(open, i, i+1)
				}
			}
			for round := range 6 {
				for range 40 {
					p, plan, cost := processes[random.IntN(2)], plans[random.IntN(2)], int64(1+random.IntN(20))
					a, b := ratelimit.Charge{Subject: "a", Plan: plan, Cost: cost}, ratelimit.Charge{Subject: "b", Plan: plans[0], Cost: cost + 1}
					switch n := random.IntN(20); {
					case n < 5:
						p.link.state.Store(int32(n / 2))
					case n == 5:
						clock.Set(clock.Now().Add(time.Duration(random.IntN(5)-1) * time.Second))
					case n == 6:
						time.Sleep(5 * time.Millisecond)
					case n < 12 && len(open) > 0:
						settle(random.IntN(len(open)))
					case n < 17:
						take(p, time.Second, a)
					default:
						take(p, time.Second, a, b)
					}
				}
				for _, p := range processes {
					p.link.state.Store(linkUp)
				}
				for tries := 0; len(open) > 0 && tries < 1000; tries++ {
					settle(0)
				}
				for _, p := range processes {
					eventually(t, "all is merged", func() bool { return !p.Open() && p.Stats().Pending == 0 })
				}
				for i, p := range processes {
					eventually(t, "nothing is sent late", func() bool { return p.link.calls.Load() == 0 })
					must(t, second(p.engine.Hold(rand.Text(), time.Second).Take(ctx, "a", half, 1000)))
					redislimit.Die(p.engine)
					processes[i] = guard(t, s, clock, judge)
				}
				clock.Set(clock.Now().Add(time.Minute))
				for _, subject := range []string{"a", "b"} {
					d, err := judge.Hold(subject, time.Second).Take(ctx, subject, half, 1)
					must(t, err)
					must(t, judge.Adjust(ctx, subject, &d, 0, subject))
					if n := used(t, judge, subject, 1<<40); n != want[subject] {
						t.Fatalf("round %d: %s has used %d, want %d, after\n%s", round, subject, n, want[subject], strings.Join(log, "\n"))
					}
				}
			}
		})
	}
}

// guard returns a process with the subjects of another engine.
func guard(t *testing.T, s *redistest.Server, clock *scriptClock, other *redislimit.Limiter) *guarded {
	t.Helper()
	c, link := clientOf(t, s), new(badLink)
	c.AddHook(link)
	c.AddHook(clock)
	engine := newLimiterOf(t, c, other)
	local, err := memory.New(memory.Options{})
	must(t, err)
	f, err := failover.New(engine, failover.Options{
		Local: local, Budget: 20 * time.Millisecond, Backoff: 2 * time.Millisecond, ConsecutiveFailures: 3, OnChange: func(error) {},
	})
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return &guarded{f, engine, link}
}
