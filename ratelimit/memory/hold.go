package memory

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// Hold implements [engine.Holder]. If the process dies, its usage is gone, except for what is in
// the file of [Open]. The file does not have the held units of fixed and calendar windows; the
// records of [Limiter.Save] have them. A Reset ends no holds. Until they end, their units are
// missing from what the file says is used after it.
func (l *Limiter) Hold(id string, timeout time.Duration) ratelimit.Limiter {
	return holder{l, id, timeout}
}

// A holder is what Hold returns.
type holder struct {
	l       *Limiter
	id      string
	timeout time.Duration
}

func (h holder) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	if d, err := engine.Decide(subject, plan, cost); err != nil || d.Outcome != 0 {
		return d, err
	}
	var d [1]ratelimit.Decision
	err := h.TakeAll(ctx, []ratelimit.Charge{{Subject: subject, Plan: plan, Cost: cost}}, d[:])
	return d[0], err
}

func (h holder) TakeAll(ctx context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	if h.id == "" || h.timeout < time.Second || h.timeout > time.Hour {
		return fmt.Errorf("%w: Hold needs an id, and a timeout from 1s to 1h, got %q and %v", ratelimit.ErrInvalid, h.id, h.timeout)
	}
	if h.l.holds.live == nil {
		return h.l.TakeAll(ctx, charges, decisions)
	}
	h.l.holds.mu.Lock()
	defer h.l.holds.mu.Unlock()
	err := h.l.TakeAll(ctx, charges, decisions)
	for i := range charges {
		if err == nil && decisions[i].Allowed() {
			h.l.holds.add(h.l.key.sum(charges[i].Subject), h.id, decisions[i])
		}
	}
	return err
}

// holds are the charges of requests in progress that are held, of an engine with a file.
type holds struct {
	mu    sync.Mutex                               // locked while a held charge is made or settled, and at a save
	live  map[uint64]map[string]ratelimit.Decision // by account and id; nil without a file
	ended map[uint64]bool                          // accounts of which a hold has ended during a save
}

// add adds a hold. The holds are locked.
func (h *holds) add(account uint64, id string, d ratelimit.Decision) {
	if h.live[account] == nil {
		h.live[account] = map[string]ratelimit.Decision{}
	}
	h.live[account][id] = d
}

// end ends a hold, and reports whether there was one. The holds are locked.
func (h *holds) end(account uint64, id string) bool {
	_, found := h.live[account][id]
	if delete(h.live[account], id); len(h.live[account]) == 0 {
		delete(h.live, account)
	}
	if found && h.ended != nil {
		h.ended[account] = true
	}
	return found
}

// saved yields the records of all keys, and then a second record, which counts, of each account
// that has holds, or of which one ended meanwhile: without what is held then. The first record may
// have had what was held, and not what it was settled at.
func (l *Limiter) saved() iter.Seq[[]Record] {
	return func(yield func([]Record) bool) {
		l.holds.mu.Lock()
		l.holds.ended = map[uint64]bool{}
		l.holds.mu.Unlock()
		for portion := range l.portions(false) {
			if !yield(portion) {
				return
			}
		}
		yield(l.withoutHolds())
	}
}

func (l *Limiter) withoutHolds() (records []Record) {
	h := &l.holds
	h.mu.Lock()
	defer h.mu.Unlock()
	for account := range h.live {
		h.ended[account] = true
	}
	for account := range h.ended {
		records = append(records, l.withoutHeld(account, h.live[account]))
	}
	h.ended = nil
	return records
}

// withoutHeld returns the record of an account without the units of some charges. Those of smooth
// quotas stay.
func (l *Limiter) withoutHeld(account uint64, held map[string]ratelimit.Decision) Record {
	s := l.lockKey(account)
	defer s.unlock()
	s.freeze()
	s.unfreeze() // what follows changes a copy of the account
	for _, d := range held {
		for i := range engine.Of(d.Plan).Len() {
			if kindOf(d.Plan, i).IsSmooth() {
				d.States[i].Reset = 0
			}
		}
		s.adjust(&d, -d.Cost)
	}
	if s.account.n == 0 { // it was reset, or its windows have ended
		return Record{Key: account}
	}
	slot, _ := s.slot()
	r := s.encode(slot, slot.mark(stored, 0))
	r.Data = s.account.encode(s.key.dataHead(account))
	return r
}
