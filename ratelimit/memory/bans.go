package memory

import (
	"context"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// A record holds the strikes and the last ban of a subject that kept sending
// requests after it was limited. Slot shows the bits.
type record struct {
	first   unixMilli // of the limited requests in a window; 0: none
	strikes int
	since   unixSecond // from which on the strikes decay; 0 without strikes
	level   int        // of the last ban; 0: none
	until   unixSecond // end of the last ban
	length  int64      // of the last ban, seconds, with byHand and ownText; 0 once a later request was admitted or was a strike
	expires unixSecond // from which on the record means nothing
}

const (
	strikeBits  = 14
	levelBits   = 8
	recordWords = 2 // beside hash and meter

	byHand     = 1 << 31 // of a length: the ban was made by hand
	ownText    = 1 << 30 // of a length: and its reason is among the names
	lengthMask = ownText - 1
)

// recordHash is the hash under which the record of the subject h is kept, in the same
// segment.
func recordHash(h uint64) uint64 { return h | 1 }

// accountHash is the hash of the account of the subject that has an account or a
// record under h.
func accountHash(h uint64) uint64 { return h &^ 1 }

// record returns the record of the subject h, and whether it has one. A record
// that has expired is empty.
func (t *table) record(h uint64, now instant) (r record, found bool) {
	i, found := t.find(recordHash(h))
	if found {
		r.read(t.slot(i), now)
	}
	return r, found
}

// peekRecord fills r, which is empty, with the record of h without the lock. It reports
// whether there is a record that was read in one piece and has not expired.
func (t *table) peekRecord(h uint64, now instant, r *record) bool {
	h = recordHash(h)
	i, _ := t.find(h)
	s := t.slot(i)
	before := s.meter()
	if s.hash() != h || !before.isRecord() {
		return false
	}
	r.read(s, now)
	return s.meter() == before && r.expires > 0
}

// peekBan returns the end of the ban in force that the meter m has, or 0. A
// ban that began after now is left to the record: the clock stepped back, which may end it.
func (t *table) peekBan(m meter, now instant) unixSecond {
	ends := unixSecond(m.count())
	if !m.has(banned) || ends.instant() <= now || now.secondUp() < unixSecond(t.bansSince.Load()) {
		return 0
	}
	return ends
}

// read fills r, which is empty, with what a slot holds at a time: nothing once
// it has expired.
func (r *record) read(s slot, now instant) {
	if r.expires = unixSecond(s.meter().count()); r.expires.instant() <= now {
		r.expires = 0
		return
	}
	a, b := s.word(0), s.word(1)
	r.first = unixMilli(a >> (levelBits + strikeBits))
	r.level = int(a >> strikeBits & (1<<levelBits - 1))
	r.strikes = int(a & (1<<strikeBits - 1))
	r.until = unixSecond(b >> 32)
	if r.strikes > 0 {
		r.since = unixSecond(uint32(b))
	} else {
		r.length = int64(uint32(b))
	}
}

// write puts the record into a slot that is frozen and had the meter old, with flags
// beside those.
func (r *record) write(s slot, old, flags meter) {
	s.setWord(0, uint64(int64(r.first)<<(levelBits+strikeBits)|int64(r.level)<<strikeBits|int64(r.strikes)))
	s.setWord(1, uint64(int64(r.until)<<32|int64(r.since)|r.length)) // one of the two is 0
	expires := uint32(min(r.expires, 1<<32-1))
	s.setMeter((newMeter(expires, int(recordLayout)) | old&(stored|dirty) | flags).after(old))
}

// empty reports whether the record says nothing.
func (r *record) empty() bool {
	return r.strikes == 0 && r.first == 0 && r.level == 0 && r.until == 0
}

// admit clears the strikes, and the length of a ban that is over.
func (r *record) admit() { r.strikes, r.since, r.length = 0, 0, 0 }

// changesOnAdmission reports whether admit would change the record. It would if a
// ban is in force.
func (r *record) changesOnAdmission() bool { return r.strikes > 0 || r.length > 0 }

// valid reports whether every field fits into its bits.
func (r *record) valid() bool {
	fits := func(n int64, bits int) bool { return n >= 0 && n < 1<<bits }
	return fits(int64(r.first), 42) && fits(int64(r.strikes), strikeBits) && fits(int64(r.level), levelBits) &&
		fits(int64(r.until), 32) && fits(int64(r.since), 32) && fits(r.length, 32) && fits(int64(r.expires), 32) &&
		(r.strikes == 0 && r.since == 0 || r.strikes > 0 && r.length == 0)
}

// banEnds returns the end of the ban in force, or 0. A clock
// that stepped back makes no ban longer than it was.
func (r *record) banEnds(now instant) unixSecond {
	if r.length == 0 || r.until.instant() <= now {
		return 0
	}
	return min(r.until, now.secondUp()+unixSecond(r.length&lengthMask))
}

// needsLock reports whether a decision about a ban that ends then is made under the lock: the
// clock stepped back, and the ban must be shortened; or its reason is kept there.
func (r *record) needsLock(banEnds unixSecond) bool {
	return banEnds < r.until || r.length&ownText != 0
}

// Decisions point to the reason of their ban.
var byStrikes, byOperator = engine.ReasonStrikes, engine.ReasonByHand

// reason returns the reason of the ban in force. b is what the names have of the subject: nil
// if they had no room.
func (r *record) reason(b *named) *string {
	switch {
	case r.length&byHand == 0:
		return &byStrikes
	case r.length&ownText == 0 || b == nil:
		return &byOperator
	}
	return &b.reason
}

// withinGrace reports whether a request that is limited now is not a strike,
// because the first one in the window that began at start was less than grace ago.
func (r *record) withinGrace(now instant, start unixSecond, grace time.Duration) bool {
	ms := now.millisecond()
	return r.first >= start.millisecond() && r.first <= ms && int64(ms-r.first) < grace.Milliseconds()
}

// excuses reports whether a request that is limited is not a strike, and changes nothing of
// the record, which lasts until the last window of the subject ends.
func (r *record) excuses(d *ratelimit.Decision, lastEnd unixSecond) bool {
	return r.expires >= lastEnd && r.withinGrace(timeOf(d), windowStart(d), d.Plan.Numbers().Grace)
}

// strike enters a request that was limited now into the record, in a window
// that began at start. It reports whether the request is a strike,
// and whether that starts a ban.
func (r *record) strike(p ratelimit.Penalty, now instant, start unixSecond) (struck, banned bool) {
	ms := now.millisecond()
	if r.first == 0 || r.first < start.millisecond() || r.first > ms { // a window may begin before 1970
		r.first = ms
	}
	if r.withinGrace(now, start, p.Grace) {
		return false, false
	}
	strikes, since := engine.Penalty(p).Strike(r.strikes, int64(r.since), int64(now.second()))
	r.strikes, r.since = strikes, unixSecond(since)
	r.length = 0
	if r.strikes <= p.Strikes {
		return true, false
	}
	level, length := engine.Penalty(p).NextBan(r.level, now.since(r.until.instant()))
	r.level = level
	r.ban(length, now)
	r.expires = max(r.expires, r.until+unixSecond(level)*unixSecond(p.Forgive/time.Second))
	return true, true
}

// banByHand starts a ban that keeps the level of the last one. The record outlives this
// ban as long as it would have outlived that one: the plan, which says how soon a level is
// forgiven, is not known here.
func (r *record) banByHand(length time.Duration, reason string, now instant) {
	afterlife := r.expires - r.until
	r.ban(length, now)
	if reason != engine.ReasonStrikes {
		r.length |= byHand
	}
	if reason != engine.ReasonStrikes && reason != engine.ReasonByHand {
		r.length |= ownText
	}
	if r.level > 0 {
		r.expires = max(r.expires, r.until+afterlife)
	}
}

// ban starts a ban and ends any other.
func (r *record) ban(length time.Duration, now instant) {
	r.strikes, r.since = 0, 0
	r.until = now.add(length).secondUp()
	r.length = int64(r.until - now.second())
	r.expires = max(r.expires, r.until)
}

// strikesLeft returns what a decision says of strikes.
func strikesLeft(d *ratelimit.Decision, r *record) int {
	allowed := engine.Of(d.Plan).Strikes()
	switch {
	case allowed < 0:
		return -1
	case d.Outcome == ratelimit.Banned:
		return 0
	case r.strikes == 0:
		return allowed
	}
	return engine.Penalty(d.Plan.Penalty()).StrikesLeft(r.strikes, int64(r.since), int64(timeOf(d).second()))
}

// Ban implements [engine.Banner]. The length is more than zero, and at most
// 366 days. A reason of its own is kept with the name, and is "by hand" if that is not kept;
// see [Limiter.Bans].
func (l *Limiter) Ban(_ context.Context, subject string, length time.Duration, reason string) error {
	why, err := engine.CheckBan(subject, length, reason)
	if err != nil {
		return err
	}
	s := l.lock(subject)
	defer s.unlock()
	r, _ := s.record(s.now)
	r.banByHand(length, why, s.now)
	s.freeze()
	defer s.unfreeze()
	if err := s.putRecord(r, dirty); err != nil {
		return err
	}
	s.names.keep(s.hash, subject, reason)
	return nil
}

// Unban implements [engine.Banner].
func (l *Limiter) Unban(_ context.Context, subject string) (bool, error) {
	if subject == "" {
		return false, errNoSubject
	}
	s := l.lock(subject)
	defer s.unlock()
	r, _ := s.record(s.now)
	s.freeze()
	defer s.unfreeze()
	s.drop(recordHash(s.hash))
	return r.banEnds(s.now) > 0, nil
}

// Bans implements [engine.Banner]. The names of banned subjects, with the reasons of
// their bans, take at most 256 KiB in each segment (see Options.MaxSubjects). A name for
// which there is no room, or that is longer than 1 KiB, is not kept: the ban is in force and
// not listed, and Unban ends it.
func (l *Limiter) Bans(context.Context) ([]engine.Ban, error) {
	var bans []engine.Ban
	now := l.clock.now()
	for i := range l.segments {
		bans = l.segments[i].appendBans(bans, now)
	}
	return bans, nil
}

func (s *segment) appendBans(bans []engine.Ban, now instant) []engine.Ban {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.table.Load()
	for h, b := range s.names.all {
		if r, _ := t.record(h, now); r.banEnds(now) > 0 {
			bans = append(bans, engine.Ban{
				Subject: b.name,
				Ends:    time.Unix(int64(r.banEnds(now)), 0).UTC(),
				Level:   r.level,
				Reason:  *r.reason(b),
			})
		}
	}
	return bans
}

// names holds the names of banned subjects, by the hashes of their accounts, for lists of
// bans and Save, and the reasons of bans by hand.
type names struct {
	all   map[uint64]*named
	bytes int // of all names and reasons
}

// named is the name of a subject, and the reason of its ban if it is a text. It never
// changes: decisions point to the reason.
type named struct{ name, reason string }

const (
	longestName = 1 << 10                // bytes
	mostNames   = 64 * subjectsInSegment // bytes
)

// keep keeps a name until drop is called. The empty name is that of a subject whose name
// was not kept when it was saved.
func (n *names) keep(h uint64, name, reason string) {
	n.drop(h)
	if name == "" || len(name) > longestName || n.bytes+len(name)+len(reason) > mostNames {
		return
	}
	if n.all == nil {
		n.all = map[uint64]*named{}
	}
	n.all[h] = &named{strings.Clone(name), strings.Clone(reason)} // they may be parts of longer strings
	n.bytes += len(name) + len(reason)
}

func (n *names) drop(h uint64) {
	b := n.all[h]
	if b == nil {
		return
	}
	n.bytes -= len(b.name) + len(b.reason)
	if delete(n.all, h); len(n.all) == 0 {
		n.all = nil // a map does not shrink
	}
}
