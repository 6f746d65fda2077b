package memory

import (
	"context"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// A conduct is what the engine keeps of a subject that kept sending requests after it was
// limited: its strikes and its last ban. Slot shows the bits.
type conduct struct {
	first   unixMilli    // of the limited requests in a window; 0: none
	strikes int          // with strikes there is no length: they share bits
	since   unixSecond   // from which on the strikes decay; 0 without strikes
	level   int          // of the last ban; 0: none
	until   unixSecond   // end of the last ban
	length  wholeSeconds // of the last ban; 0 once a later request was admitted or was a strike
	cause   banCause     // of the last ban while it has a length
	expires unixSecond   // from which on the conduct means nothing
}

const (
	strikeBits   = 14
	levelBits    = 8
	conductWords = 2 // beside hash and meter
)

// A banCause says why a ban was made. It has two bits, and one value of them means nothing.
type banCause uint8

const (
	byStrikes      banCause = 0
	byHand         banCause = 2
	byHandWithText banCause = 3 // the text is among the names
)

const banLengthBits = 30

// banBits returns the length of the last ban and, in the two bits above it, its cause.
func (c *conduct) banBits() uint32 { return uint32(c.cause)<<banLengthBits | uint32(c.length) }

func (c *conduct) setBanBits(bits uint32) {
	c.length, c.cause = wholeSeconds(bits&(1<<banLengthBits-1)), banCause(bits>>banLengthBits)
}

// endBan notes that a request was admitted, or was a strike, after the last ban.
func (c *conduct) endBan() { c.length, c.cause = 0, byStrikes }

// conductHash is the hash under which the conduct of the subject h is kept, in the same
// segment.
func conductHash(h uint64) uint64 { return h | 1 }

// accountHash is the hash of the account of the subject that has an account or a
// conduct under h.
func accountHash(h uint64) uint64 { return h &^ 1 }

// conduct returns the conduct of the subject h, and whether it has any. It is empty once it has
// expired.
func (t *table) conduct(h uint64, now instant) (c conduct, found bool) {
	i, found := t.find(conductHash(h))
	if found {
		c.read(t.slot(i), now)
	}
	return c, found
}

// peekConduct fills c, which is empty, with the conduct of h without the lock. It reports
// whether there is any that was read in one piece and has not expired.
func (t *table) peekConduct(h uint64, now instant, c *conduct) bool {
	h = conductHash(h)
	i, _ := t.find(h)
	s := t.slot(i)
	before := s.meter()
	if s.hash() != h || !before.isConduct() {
		return false
	}
	c.read(s, now)
	return s.meter() == before && c.expires > 0
}

// peekBan returns the end of the ban in force that the meter m has, or 0. A
// ban that began after now is left to the conduct: the clock stepped back, which may end it.
func (t *table) peekBan(m meter, now instant) unixSecond {
	ends := m.banEnd()
	if m.conduct() != banned || ends.instant() <= now || now.secondUp() < unixSecond(t.bansSince.Load()) {
		return 0
	}
	return ends
}

// read fills c, which is empty, with what a slot holds at a time: nothing once
// it has expired.
func (c *conduct) read(s slot, now instant) {
	if c.expires = s.meter().expires(); c.expires.instant() <= now {
		c.expires = 0
		return
	}
	a, b := s.word(0), s.word(1)
	c.first = unixMilli(a >> (levelBits + strikeBits))
	c.level = int(a >> strikeBits & (1<<levelBits - 1))
	c.strikes = int(a & (1<<strikeBits - 1))
	c.until = unixSecond(b >> 32)
	if sinceOrBan := uint32(b); c.strikes > 0 {
		c.since = unixSecond(sinceOrBan)
	} else {
		c.setBanBits(sinceOrBan)
	}
}

// write puts the conduct into a slot that is frozen and had the meter old, with flags
// beside those.
func (c *conduct) write(s slot, old, flags meter) {
	s.setWord(0, uint64(int64(c.first)<<(levelBits+strikeBits)|int64(c.level)<<strikeBits|int64(c.strikes)))
	sinceOrBan := uint32(c.since)
	if c.strikes == 0 {
		sinceOrBan = c.banBits()
	}
	s.setWord(1, uint64(c.until)<<32|uint64(sinceOrBan))
	expires := uint32(min(c.expires, 1<<32-1))
	s.setMeter((newMeter(expires, int(conductLayout)) | old&(stored|dirty) | flags).after(old))
}

// empty reports whether the conduct says nothing.
func (c *conduct) empty() bool {
	return c.strikes == 0 && c.first == 0 && c.level == 0 && c.until == 0
}

// admit clears the strikes, and the length of a ban that is over.
func (c *conduct) admit() {
	c.strikes, c.since = 0, 0
	c.endBan()
}

// changesOnAdmission reports whether admit would change the conduct. It would if a
// ban is in force.
func (c *conduct) changesOnAdmission() bool { return c.strikes > 0 || c.length > 0 }

// valid reports whether every field fits into its bits.
func (c *conduct) valid() bool {
	fits := func(n int64, bits int) bool { return n >= 0 && n < 1<<bits }
	return fits(int64(c.first), 42) && fits(int64(c.strikes), strikeBits) && fits(int64(c.level), levelBits) &&
		fits(int64(c.until), 32) && fits(int64(c.since), 32) && fits(int64(c.expires), 32) &&
		(c.strikes == 0 && c.since == 0 || c.strikes > 0 && c.length == 0) &&
		(c.cause == byStrikes || c.length > 0 && (c.cause == byHand || c.cause == byHandWithText))
}

// banEnds returns the end of the ban in force, or 0. A clock
// that stepped back makes no ban longer than it was.
func (c *conduct) banEnds(now instant) unixSecond {
	if c.length == 0 || c.until.instant() <= now {
		return 0
	}
	return min(c.until, now.secondUp().add(c.length))
}

// needsLock reports whether a decision about a ban that ends then is made under the lock: the
// clock stepped back, and the ban must be shortened; or its reason is kept there.
func (c *conduct) needsLock(banEnds unixSecond) bool {
	return banEnds < c.until || c.cause == byHandWithText
}

// Decisions point to the reason of their ban.
var reasonStrikes, reasonByHand = engine.ReasonStrikes, engine.ReasonByHand

// reason returns the reason of the ban in force. b is what the names have of the subject: nil
// if they had no room.
func (c *conduct) reason(b *named) *string {
	switch {
	case c.cause == byStrikes:
		return &reasonStrikes
	case c.cause == byHand || b == nil:
		return &reasonByHand
	}
	return &b.reason
}

// withinGrace reports whether a request that is limited now is not a strike,
// because the first one in the window that began at start was less than grace ago.
func (c *conduct) withinGrace(now instant, start unixSecond, grace time.Duration) bool {
	ms := now.millisecond()
	return c.first >= start.millisecond() && c.first <= ms && int64(ms-c.first) < grace.Milliseconds()
}

// excuses reports whether a request that is limited is not a strike, and changes nothing of
// the conduct, which lasts until the last window of the subject ends.
func (c *conduct) excuses(d *ratelimit.Decision, lastEnd unixSecond) bool {
	return c.expires >= lastEnd && c.withinGrace(timeOf(d), windowStart(d), d.Plan.Numbers().Grace)
}

// strike enters a request that was limited now into the conduct, in a window that began at
// start. The caller has made the conduct last until the last window ends. It reports whether
// the request is a strike, and whether that starts a ban.
func (c *conduct) strike(p ratelimit.Penalty, now instant, start unixSecond) (struck, banned bool) {
	ms := now.millisecond()
	if c.first == 0 || c.first < start.millisecond() || c.first > ms { // a window may begin before 1970
		c.first = ms
	}
	if c.withinGrace(now, start, p.Grace) {
		return false, false
	}
	strikes, since := engine.Penalty(p).Strike(c.strikes, int64(c.since), int64(now.second()))
	c.strikes, c.since = strikes, unixSecond(since)
	c.endBan()
	if c.strikes <= p.Strikes {
		return true, false
	}
	level, length := engine.Penalty(p).NextBan(c.level, now.since(c.until.instant()))
	c.level = level
	c.ban(length, now)
	c.expires = max(c.expires, c.until.add(wholeSeconds(level)*wholeSeconds(p.Forgive/time.Second)))
	return true, true
}

// banByHand starts a ban that keeps the level of the last one. The conduct outlives this
// ban as long as it would have outlived that one: the plan, which says how soon a level is
// forgiven, is not known here.
func (c *conduct) banByHand(length time.Duration, reason string, now instant) {
	afterlife := c.expires.since(c.until)
	c.ban(length, now)
	switch reason {
	case engine.ReasonStrikes: // a ban that another engine made
	case engine.ReasonByHand:
		c.cause = byHand
	default:
		c.cause = byHandWithText
	}
	if c.level > 0 {
		c.expires = max(c.expires, c.until.add(afterlife))
	}
}

// ban starts a ban and ends any other.
func (c *conduct) ban(length time.Duration, now instant) {
	c.strikes, c.since = 0, 0
	c.until = now.add(length).secondUp()
	c.length, c.cause = c.until.since(now.second()), byStrikes
	c.expires = max(c.expires, c.until)
}

// strikesLeft returns what a decision says of strikes.
func strikesLeft(d *ratelimit.Decision, c *conduct) int {
	allowed := engine.Of(d.Plan).Strikes()
	switch {
	case allowed < 0:
		return -1
	case d.Outcome == ratelimit.Banned:
		return 0
	case c.strikes == 0:
		return allowed
	}
	return engine.Penalty(d.Plan.Penalty()).StrikesLeft(c.strikes, int64(c.since), int64(timeOf(d).second()))
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
	c, _ := s.conduct(s.now)
	c.banByHand(length, why, s.now)
	s.freeze()
	defer s.unfreeze()
	if err := s.putConduct(c, dirty); err != nil {
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
	c, _ := s.conduct(s.now)
	s.freeze()
	defer s.unfreeze()
	s.drop(conductHash(s.hash))
	return c.banEnds(s.now) > 0, nil
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
		if c, _ := t.conduct(h, now); c.banEnds(now) > 0 {
			bans = append(bans, engine.Ban{
				Subject: b.name,
				Ends:    time.Unix(int64(c.banEnds(now)), 0).UTC(),
				Level:   c.level,
				Reason:  *c.reason(b),
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

// keep keeps a name until drop is called. The empty name stands for a subject whose name
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
