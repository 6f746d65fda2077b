//go:build unix

package faults

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/internal/partial"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

var must = testcheck.NoError

// An arrangement is what stands between the callers and Redis, and what it
// promises them.
type arrangement struct {
	name     string
	failover bool
	local    bool // failover has a local engine
	promises []promise
}

var arrangements = []arrangement{
	{"redislimit alone", false, false, []promise{withinLimit, counted, countedOnce, deniedAtLimit}},
	{"failover local", true, true, []promise{answered, withinLocalLimit, counted, deniedAtLimit}},
	{"failover alone", true, false, []promise{withinLimit, counted, countedOnce, deniedAtLimit}},
}

// A primary is the engine in Redis. It counts the requests that reach it while the
// caller waits for the answer, and notes for each subject what became of them.
type primary struct {
	*redislimit.Limiter
	load   *load
	calls  atomic.Int64
	partly atomic.Int64 // requests that failed because one master is away
}

// probe begins the subjects of failover's own requests.
const probe = "failover:probe:"

func (p *primary) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	if !strings.HasPrefix(subject, probe) && ctx.Err() == nil {
		p.calls.Add(1)
	}
	phase := p.load.phase.Load()
	d, err := p.Limiter.Take(ctx, subject, plan, cost)
	if errors.Is(err, partial.ErrOutage) {
		p.partly.Add(1)
	}
	for _, s := range p.load.subjects {
		switch {
		case s.name != subject:
		case err != nil:
			s.refused.Add(1)
		default:
			s.decided.Store(phase)
		}
	}
	return d, err
}

// A guard is a failover.Limiter, and what its circuit has done.
type guard struct {
	*failover.Limiter
	refused atomic.Int64 // probes that failed
}

// newGuard puts a guard in front of the primary, or returns nil.
func newGuard(t *testing.T, a arrangement, p *primary) *guard {
	t.Helper()
	if !a.failover {
		return nil
	}
	g := new(guard)
	failing := false
	opts := failover.Options{OnChange: func(failure error) {
		if failing && failure != nil {
			g.refused.Add(1)
		}
		failing = failure != nil
	}}
	if a.local {
		local, err := memory.New(memory.Options{})
		must(t, err)
		opts.Local = local
	}
	var err error
	if g.Limiter, err = failover.New(p, opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

// recovered reports whether the primary decides again, and knows everything.
func (g *guard) recovered() bool {
	return !g.Open() && g.Stats().Pending == 0
}
