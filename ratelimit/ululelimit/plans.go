package ululelimit

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ulule/limiter/v3"

	"github.com/animalstore/gatehouse/ratelimit"
)

// maxPlans bounds how many plans are kept. Most services have a handful of
// rates; one that makes them up from its callers' words must not fill the
// memory.
const maxPlans = 256

// plans are the plans of the rates that were seen. Reading takes no lock: for a
// rate that is new the whole map is copied, which is seldom.
type plans struct {
	prefix  string
	penalty ratelimit.Penalty
	kept    atomic.Pointer[map[rateKey]*ratePlan]
	mu      sync.Mutex // held to replace kept
}

// A rateKey is all of a rate that counts.
type rateKey struct {
	limit  int64
	period time.Duration
}

// A ratePlan is what the engine is asked for a rate.
type ratePlan struct {
	*ratelimit.Plan
	keyspace
}

func (p *plans) init(prefix string, penalty ratelimit.Penalty) error {
	p.prefix, p.penalty = prefix, penalty
	p.kept.Store(&map[rateKey]*ratePlan{})
	_, err := p.make(rateKey{1, time.Second})
	return err
}

// of returns the plan of a rate.
func (p *plans) of(rate limiter.Rate) (*ratePlan, error) {
	key := rateKey{rate.Limit, rate.Period}
	if plan := (*p.kept.Load())[key]; plan != nil {
		return plan, nil
	}
	plan, err := p.make(key)
	if err != nil {
		return nil, fmt.Errorf("%w: ulule rate of %d in %v: %w", ratelimit.ErrInvalid, rate.Limit, rate.Period, err)
	}
	p.keep(key, plan)
	return plan, nil
}

// make returns a plan that allows one unit more than the rate, for the first
// request that is too many. Its name tells the rate.
//
// The period is in the subject, because an engine counts whatever a subject uses
// in all windows that the subject has.
func (p *plans) make(key rateKey) (*ratePlan, error) {
	name := ratelimit.Quota{Limit: key.limit, Window: key.period}.String()
	plan, err := ratelimit.NewPlan(name, p.penalty, ratelimit.Quota{Limit: key.limit + 1, Window: key.period})
	return &ratePlan{plan, newKeyspace(p.prefix, key.period)}, err
}

// keep adds a plan, and forgets all others if there are too many.
func (p *plans) keep(key rateKey, plan *ratePlan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := maps.Clone(*p.kept.Load())
	if len(next) >= maxPlans {
		clear(next)
	}
	next[key] = plan
	p.kept.Store(&next)
}
