package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// usage is what a region tells the others, for example as JSON.
type usage struct {
	ID            string // of this usage, also if it is sent again
	Subject, Plan string
	Time          int64 // of a decision in the windows that were charged, in Unix nanoseconds
	Units         int64 // less than 0 for refunds
}

// local is an engine of package memory, redislimit or failover.
type local interface {
	ratelimit.Limiter
	engine.MultiTaker
	engine.Adjuster
}

// region is the engine of a region that tells its peers what it has charged.
type region struct {
	local
	plans map[string]*ratelimit.Plan // by name; one that a region lacks stops the exchange with it
	peers []*peer
}

func (r *region) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	d, err := r.local.Take(ctx, subject, plan, cost)
	r.count(subject, &d, cost, err)
	return d, err
}

func (r *region) TakeAll(ctx context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	err := r.local.TakeAll(ctx, charges, decisions)
	for i, c := range charges {
		r.count(c.Subject, &decisions[i], c.Cost, err)
	}
	return err
}

func (r *region) Adjust(ctx context.Context, subject string, d *ratelimit.Decision, units int64, id string) error {
	err := r.local.Adjust(ctx, subject, d, units, id)
	r.count(subject, d, units-d.Cost, err)
	return err
}

func (r *region) count(subject string, d *ratelimit.Decision, units int64, err error) {
	if err != nil || !d.Allowed() || engine.Of(d.Plan).Len() == 0 {
		return
	}
	key := windows{subject: subject, plan: d.Plan}
	for i, p := 0, engine.Of(d.Plan); i < p.Len(); i++ {
		if p.Kind(i) > 0 { // not smooth
			key.ends[i] = d.States[i].Reset
		}
	}
	for _, p := range r.peers {
		p.mu.Lock()
		p.used[key] = usage{Subject: subject, Plan: d.Plan.Name(), Time: d.Time, Units: p.used[key].Units + units}
		p.mu.Unlock()
	}
}

// add charges what another region has charged, and nothing if it lacks a plan. If it fails, it
// can be called again with the same usage: Redis knows the IDs for ten minutes. Later, or in an
// engine of package memory, some of it may count twice.
func (r *region) add(ctx context.Context, all []usage) error {
	for _, u := range all {
		if r.plans[u.Plan] == nil {
			return fmt.Errorf("this region has no plan %q", u.Plan)
		}
	}
	for _, u := range all {
		if err := engine.AddUsage(ctx, r.local, u.Subject, r.plans[u.Plan], u.Units, time.Unix(0, u.Time), u.ID); err != nil {
			return err
		}
	}
	return nil
}

// windows are the windows of a subject that end together. As long as a peer cannot be reached, it
// costs memory for each.
type windows struct {
	subject string
	plan    *ratelimit.Plan
	ends    [4]int64
}

// peer is another region.
type peer struct {
	send func(ctx context.Context, all []usage) error
	mu   sync.Mutex
	used map[windows]usage // since the last exchange
}

// exchange sends what was charged, again and again with pauses, and once more when ctx ends.
func (p *peer) exchange(ctx context.Context, pause time.Duration) {
	var sent []usage // but not acknowledged
	for ctx.Err() == nil {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		if len(sent) == 0 || ctx.Err() != nil { // at the end everything
			sent = append(sent, p.drain()...)
		}
		if len(sent) == 0 {
			continue
		}
		if err := p.send(context.WithoutCancel(ctx), sent); err != nil {
			log.Printf("usage is sent again in %v: %v", pause, err)
			continue
		}
		sent = nil
	}
}

func (p *peer) drain() (all []usage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, u := range p.used {
		u.ID = rand.Text()
		all = append(all, u)
	}
	clear(p.used)
	return all
}
