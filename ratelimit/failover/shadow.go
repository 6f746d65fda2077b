package failover

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A shadow is what the primary last said of the subjects that matter when it is
// gone: those that it denied, or that have used half of a quota. To look at a
// decision costs a comparison for each quota; to keep it, a lock and a map.
// Subjects are known by a keyed hash of 64 bits.
type shadow struct {
	bound  int // subjects in a shard; 0: nothing is kept
	seed   maphash.Seed
	held   atomic.Int64
	shards [shadowShards]shadowShard
}

const (
	shadowShards = 32
	shadowSample = 4
)

type shadowShard struct {
	mu   sync.Mutex
	seen map[uint64]seen
	_    [48]byte // keeps two locks off one cache line
}

// seen is the part of a decision that is kept.
type seen struct {
	plan    *ratelimit.Plan
	states  [ratelimit.MaxQuotas]ratelimit.State
	banEnds int64 // Unix seconds
}

// ends returns from when on it means nothing, in Unix seconds.
func (s *seen) ends() int64 { return max(s.states[s.plan.Len()-1].Reset, s.banEnds) }

func (s *shadow) init(bound int) {
	s.seed = maphash.MakeSeed()
	s.bound = (max(bound, 0) + shadowShards - 1) / shadowShards
}

func (s *shadow) shard(hash uint64) *shadowShard { return &s.shards[hash%shadowShards] }

// note keeps what d, a decision of the primary, says of subject.
func (s *shadow) note(subject string, d *ratelimit.Decision) {
	if s.bound == 0 || !matters(d) {
		return
	}
	h := maphash.String(s.seed, subject)
	x := s.shard(h)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.seen == nil {
		x.seen = map[uint64]seen{}
	}
	before := len(x.seen)
	x.seen[h] = seen{d.Plan, d.States, d.BanEnds}
	if len(x.seen) > s.bound {
		x.drop(h, d.Time/int64(time.Second))
	}
	if n := len(x.seen) - before; n != 0 {
		s.held.Add(int64(n))
	}
}

func matters(d *ratelimit.Decision) bool {
	if d.Outcome != ratelimit.Allowed {
		return true
	}
	for i := range d.Plan.Len() {
		if d.States[i].Remaining*2 <= d.Plan.Quota(i).Limit {
			return true
		}
	}
	return false
}

// lift forgets the ban of subject.
func (s *shadow) lift(subject string) {
	if s.held.Load() == 0 {
		return
	}
	h := maphash.String(s.seed, subject)
	x := s.shard(h)
	x.mu.Lock()
	defer x.mu.Unlock()
	if kept, ok := x.seen[h]; ok {
		kept.banEnds = 0
		x.seen[h] = kept
	}
}

// drop drops another subject than h: of a sample the one that soonest means
// nothing.
func (x *shadowShard) drop(h uint64, now int64) {
	var victim uint64
	var soonest int64
	n := 0
	for other, s := range x.seen { // begins anywhere
		if other == h {
			continue
		}
		ends := s.ends()
		if n == 0 || ends < soonest {
			victim, soonest = other, ends
		}
		if n++; n == shadowSample || ends <= now {
			break
		}
	}
	delete(x.seen, victim)
}

// claim takes out what is kept of subject.
func (s *shadow) claim(subject string) (kept seen, ok bool) {
	if s.held.Load() == 0 {
		return kept, false
	}
	h := maphash.String(s.seed, subject)
	x := s.shard(h)
	x.mu.Lock()
	defer x.mu.Unlock()
	if kept, ok = x.seen[h]; ok {
		delete(x.seen, h)
		s.held.Add(-1)
	}
	return kept, ok
}

// cast has the local engine know of subject what the primary last said. What
// fails is passed over: the subject then has what the local engine gives it.
func (l *Limiter) cast(ctx context.Context, subject string) {
	kept, ok := l.shadow.claim(subject)
	if !ok {
		return
	}
	now := time.Now()
	if d, err := l.localCapable.peeker.Peek(ctx, subject, kept.plan); err == nil {
		u := usage{plan: kept.plan, at: now.UnixNano()}
		for i := range kept.plan.Len() {
			// What the local engine has counted since an earlier outage was merged,
			// and is part of what the primary said.
			if kept.states[i].Reset > now.Unix() {
				u.units[i] = max(d.States[i].Remaining-kept.states[i].Remaining, 0)
			}
		}
		_ = charge(ctx, l.opts.Local, subject, &u)
	}
	if left := time.Until(time.Unix(kept.banEnds, 0)); left > 0 && l.localCapable.banner != nil {
		_ = l.localCapable.banner.Ban(ctx, subject, left)
	}
}
