package api

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// KeySubject returns the subject that the limits of a key alone are counted for.
func KeySubject(id string) string { return "key:" + id }

// keyCharges returns what a request is charged in addition to its owner: the limits of its
// key, if it has any. They never lead to a strike or a ban.
func keyCharges(p apikey.Principal) []ratelimit.Charge {
	if p.Limits == nil {
		return nil
	}
	return []ratelimit.Charge{{Subject: KeySubject(p.KeyID), Plan: p.Limits}}
}

// ownerFirst is a limiter for owners and their keys. Of a request with a key that has
// limits of its own, both are charged or neither, at one instant. The response shows the
// one that matters most, but during a ban of the owner always the ban.
type ownerFirst struct {
	Limiter

	// serving says that requests are served whatever is decided, so that each of the two
	// is charged whatever the other one has left.
	serving bool
}

// Take implements [ratelimit.Limiter].
func (l ownerFirst) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	if err := requestInfoOf(ctx).undecided; err != nil {
		return ratelimit.Decision{}, err
	}
	return l.Limiter.Take(ctx, subject, plan, cost)
}

// TakeAll implements [engine.MultiTaker]. The first charge is that of the owner.
func (l ownerFirst) TakeAll(ctx context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	if err := requestInfoOf(ctx).undecided; err != nil {
		return err
	}
	err := l.take(ctx, charges, decisions)
	if err == nil && decisions[0].Outcome == ratelimit.Banned {
		for i := 1; i < len(decisions); i++ {
			decisions[i].Outcome = ratelimit.Spared
		}
	}
	return err
}

func (l ownerFirst) take(ctx context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) (err error) {
	if !l.serving {
		return l.Limiter.TakeAll(ctx, charges, decisions)
	}
	for i, c := range charges {
		if decisions[i], err = l.Limiter.Take(ctx, c.Subject, c.Plan, c.Cost); err != nil {
			return err // the request is served, so that what was charged stays charged
		}
	}
	return nil
}

// A peeked is what the caller of a request that is not charged has left, and the limits of
// its key, which has no plan if there are none.
type peeked struct{ caller, key ratelimit.Decision }

// look begins to peek at all that a request of c would be charged to, so that the request
// waits for a shared engine only once. The function that it returns waits for the answers.
func (a *api) look(ctx context.Context, c ratelimit.Caller) func() (*peeked, error) {
	p := new(peeked)
	caller := a.peekInto(ctx, &p.caller, c.Subject, c.Plan)
	keys := make([]<-chan error, len(c.Also)) // of one key at most
	for i, key := range c.Also {
		keys[i] = a.peekInto(ctx, &p.key, key.Subject, key.Plan)
	}
	return func() (*peeked, error) {
		err := <-caller
		for _, key := range keys {
			err = cmp.Or(err, <-key)
		}
		return p, err
	}
}

// peekInto peeks in another goroutine. The error of a panic is that of an engine that fails.
func (a *api) peekInto(ctx context.Context, d *ratelimit.Decision, subject string, plan *ratelimit.Plan) <-chan error {
	done := make(chan error, 1)
	go func() {
		var err error
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("peek: panic: %v\n%s", v, debug.Stack())
			}
			done <- err
		}()
		*d, err = a.Limiter.Peek(ctx, subject, plan)
	}()
	return done
}

// deciding returns the decision that a response shows; see [ownerFirst].
func (p *peeked) deciding() ratelimit.Decision {
	both := [...]ratelimit.Decision{p.caller, p.key}
	if p.caller.Outcome == ratelimit.Banned {
		return p.caller
	}
	return both[engine.Deciding(both[:])]
}
