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

// maxPlans bounds how many plans are kept. Most services have a handful of rates; a
// service that makes rates from the input of its callers must not fill the memory.
const maxPlans = 256

// plans are the plans of the rates seen so far. A reader takes no lock: a new rate,
// which is rare, copies the whole map.
type plans struct {
	prefix  string
	penalty ratelimit.Penalty
	kept    atomic.Pointer[map[rateKey]*ratePlan]
	mu      sync.Mutex // held to replace kept
}

// A rateKey is the part of a rate that decides: all but its name.
type rateKey struct {
	limit  int64
	period time.Duration
}

// A ratePlan is the plan and the keys of a rate.
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
		return nil, fmt.Errorf("%w: rate of %d in %v: %w", ratelimit.ErrInvalid, rate.Limit, rate.Period, err)
	}
	p.keep(key, plan)
	return plan, nil
}

// make returns a plan that allows one unit more than the rate, for the first request
// over the limit. It has the name of the rate.
//
// The period is in the subject, because an engine counts all usage of a subject in all
// its windows.
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
