package failover

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A shadow is what the primary last said of the subjects that matter when it is
// gone: those that it denied, or that have used half of a quota. To look at a
// decision costs a comparison for each quota; to keep it, or to see that nothing
// older is kept of the subject while something is of others, a lock and a map.
// Subjects are known by a keyed hash of 64 bits.
type shadow struct {
	bound int   // subjects in a shard; 0: nothing is kept
	reach int64 // how far apart decisions are whose answers may overtake each other, nanoseconds
	seed  maphash.Seed
	held  atomic.Int64
	// commands counts the bans, unbans and resets by hand. What the primary
	// decided while there was one may be from before it, and is not kept.
	commands atomic.Uint64
	shards   [shadowShards]shadowShard
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
	time    int64 // of the primary's clock, Unix nanoseconds
}

// ends returns from when on it means nothing, in Unix seconds.
func (s *seen) ends() int64 { return max(s.states[s.plan.Len()-1].Reset, s.banEnds) }

func (s *shadow) init(bound int, reach time.Duration) {
	s.seed = maphash.MakeSeed()
	s.bound = (max(bound, 0) + shadowShards - 1) / shadowShards
	s.reach = int64(reach)
}

// find returns the shard of subject, and its hash; nil if nothing is kept of
// anybody.
func (s *shadow) find(subject string) (*shadowShard, uint64) {
	if s.held.Load() == 0 {
		return nil, 0
	}
	return s.shard(subject)
}

func (s *shadow) shard(subject string) (*shadowShard, uint64) {
	h := maphash.String(s.seed, subject)
	return &s.shards[h%shadowShards], h
}

// note keeps what d, a decision of the primary, says of subject, unless it was
// overtaken by what is kept, or by a command since there were as many as given.
func (s *shadow) note(subject string, d *ratelimit.Decision, commands uint64) {
	keep := matters(d)
	if s.bound == 0 || !keep && s.held.Load() == 0 {
		return
	}
	x, h := s.shard(subject)
	x.mu.Lock()
	defer x.mu.Unlock()
	switch kept, known := x.seen[h]; {
	case s.commands.Load() != commands:
	case known && s.overtook(&kept, d):
	case keep:
		s.put(x, h, seen{d.Plan, d.States, d.BanEnds, d.Time})
	case known:
		s.remove(x, h)
	}
}

// overtook reports whether kept counts although d came after it: the primary
// decided both at nearly the same time, and kept says more, since usage grows. One
// that says less at clearly another time was decided after a reset, a refund, or a
// step of the primary's clock. Which of two times is the later would not be enough,
// since an engine may read its clock before it counts, and not for each decision.
func (s *shadow) overtook(kept *seen, d *ratelimit.Decision) bool {
	if apart := kept.time - d.Time; apart > s.reach || apart < -s.reach {
		return false
	}
	if !sameWindows(kept.plan, d.Plan) {
		return kept.time > d.Time
	}
	return kept.saysMore(d)
}

// saysMore reports whether s knows of more than d: of more that was used in a
// window, of a later window, or of a ban that ends later. The plans may have other
// limits, but not other windows: usage belongs to the window.
func (s *seen) saysMore(d *ratelimit.Decision) bool {
	for i := range d.Plan.Len() {
		a, b := s.states[i], d.States[i]
		if a.Reset > b.Reset {
			return true
		}
		more := s.plan.Quota(i).Limit-a.Remaining > d.Plan.Quota(i).Limit-b.Remaining
		if more && a.Reset == b.Reset {
			return true
		}
	}
	return s.banEnds > max(d.BanEnds, d.Time/int64(time.Second))
}

func (s *shadow) put(x *shadowShard, h uint64, what seen) {
	if x.seen == nil {
		x.seen = map[uint64]seen{}
	}
	before := len(x.seen)
	x.seen[h] = what
	if len(x.seen) > s.bound {
		x.drop(h, what.time/int64(time.Second))
	}
	if n := len(x.seen) - before; n != 0 {
		s.held.Add(int64(n))
	}
}

func (s *shadow) remove(x *shadowShard, h uint64) {
	delete(x.seen, h)
	s.held.Add(-1)
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

// unban forgets the ban of subject. It reports whether there was one in force.
func (s *shadow) unban(subject string) bool {
	s.commands.Add(1)
	x, h := s.find(subject)
	if x == nil {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	kept, known := x.seen[h]
	if !known || kept.banEnds == 0 {
		return false
	}
	unbanned := kept.banEnds > time.Now().Unix()
	kept.banEnds = 0
	x.seen[h] = kept
	return unbanned
}

// forget forgets subject.
func (s *shadow) forget(subject string) {
	s.commands.Add(1)
	x, h := s.find(subject)
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, known := x.seen[h]; known {
		s.remove(x, h)
	}
}
