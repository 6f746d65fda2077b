package ratelimit

import (
	"errors"
	"fmt"
	"time"
)

// A Penalty says what happens to a subject that keeps sending requests after it
// was limited.
//
// Each limited request is a strike, except those that arrive within Grace of
// the first limited request in the window: they were in flight when it was
// answered. The engine forgets one strike for each Decay that passes, and all
// strikes when it admits a request. A limited request that would be one strike
// more than Strikes starts a ban. Requests during a ban change nothing.
//
// A client that waits at least Decay between its requests is therefore never
// banned. Nor is a client that doubles its pauses, if Strikes is at least
// 2 + log2(Decay/Grace); if its first pause is longer than Grace, that pause
// counts instead of Grace. [DefaultPenalty] needs 5 and has 10.
//
// The first ban lasts Ban. Each further one lasts Growth times the one before,
// at most Max. Each whole Forgive that passes after the end of a ban, without
// a new one, takes one step of that growth back.
//
// The zero Penalty never bans.
type Penalty struct {
	Strikes int           // strikes without a ban, 1 to 10000; 0 in the zero Penalty only
	Grace   time.Duration // from the first limited request in a window, 0 to one hour; whole milliseconds
	Decay   time.Duration // time in which one strike is forgotten; whole seconds, 1s to MaxWindow; 0: 10s
	Ban     time.Duration // length of the first ban; whole seconds, at least one
	Growth  int           // factor from one ban to the next, 1 to 100
	Max     time.Duration // longest ban; whole seconds, Ban to MaxWindow
	Forgive time.Duration // quiet time that takes one step back; whole seconds, at least one, at most MaxWindow
}

// defaultDecay is what a Penalty with Strikes and without Decay has.
const defaultDecay = 10 * time.Second

// DefaultPenalty returns the penalty of ten strikes, one of which is forgotten
// every ten seconds, and two seconds of grace. Its bans begin at one minute,
// double up to a day, and are forgiven one step a day.
func DefaultPenalty() Penalty {
	return Penalty{
		Strikes: 10,
		Grace:   2 * time.Second,
		Decay:   defaultDecay,
		Ban:     time.Minute,
		Growth:  2,
		Max:     day,
		Forgive: day,
	}
}

// maxLevel bounds the steps that a ban grows. The longest ban is reached
// earlier with any growth over one.
const maxLevel = 255

// BanLength returns the length of the ban at a level. The first ban has level
// one. A level below one counts as one.
func (p Penalty) BanLength(level int) time.Duration {
	length := p.Ban
	for i := 1; i < level && length < p.Max && p.Growth > 1; i++ {
		if length > p.Max/time.Duration(p.Growth) {
			return p.Max
		}
		length *= time.Duration(p.Growth)
	}
	return min(length, p.Max)
}

// Level returns the level of a ban that starts quiet after the end of the last
// one, whose level was last (0: there was none).
func (p Penalty) Level(last int, quiet time.Duration) int {
	if quiet > 0 && p.Forgive > 0 {
		last -= int(min(quiet/p.Forgive, maxLevel))
	}
	return min(max(last, 0)+1, maxLevel)
}

// Strike returns the strikes after one more at the time now, and the time from
// which the oldest of them decays. Before it there were strikes since a time;
// with none, since means nothing. Times are Unix seconds, rounded down.
func (p Penalty) Strike(strikes int, since, now int64) (int, int64) {
	since = min(since, now) // the clock may have stepped back
	forgotten := (now - since) / p.decaySeconds()
	if forgotten >= int64(strikes) {
		return 1, now
	}
	return strikes - int(forgotten) + 1, since + forgotten*p.decaySeconds()
}

// StrikesLeft returns how many further strikes bring no ban at the time now,
// after strikes since a time; -1 if the penalty never bans. Times are as for
// [Penalty.Strike].
func (p Penalty) StrikesLeft(strikes int, since, now int64) int {
	if p.Strikes == 0 {
		return -1
	}
	forgotten := max(now-since, 0) / p.decaySeconds()
	return p.Strikes - int(min(max(int64(strikes)-forgotten, 0), int64(p.Strikes)))
}

func (p Penalty) decaySeconds() int64 {
	if p.Decay == 0 {
		return int64(defaultDecay / time.Second)
	}
	return int64(p.Decay / time.Second)
}

func (p Penalty) validate() error {
	if p == (Penalty{}) {
		return nil
	}
	switch {
	case p.Strikes == 0:
		return errors.New("strikes 0 is not from 1 to 10000; only the zero Penalty, which never bans, has none")
	case p.Strikes < 1 || p.Strikes > 10_000:
		return fmt.Errorf("strikes %d is not from 1 to 10000", p.Strikes)
	case p.Grace < 0 || p.Grace > time.Hour || p.Grace%time.Millisecond != 0:
		return fmt.Errorf("grace %v is not from 0 to 1h in whole milliseconds", p.Grace)
	case p.Decay != 0 && p.Decay < time.Second || p.Decay > MaxWindow || p.Decay%time.Second != 0:
		return fmt.Errorf("decay %v is not from 1s to %v in whole seconds", p.Decay, MaxWindow)
	case p.Ban < time.Second || p.Ban > MaxWindow || p.Ban%time.Second != 0:
		return fmt.Errorf("ban %v is not from 1s to %v in whole seconds", p.Ban, MaxWindow)
	case p.Growth < 1 || p.Growth > 100:
		return fmt.Errorf("growth %d is not from 1 to 100", p.Growth)
	case p.Max < p.Ban || p.Max > MaxWindow || p.Max%time.Second != 0:
		return fmt.Errorf("max %v is not from the first ban's (%v) to %v in whole seconds", p.Max, p.Ban, MaxWindow)
	case p.Forgive < time.Second || p.Forgive > MaxWindow || p.Forgive%time.Second != 0:
		return fmt.Errorf("forgive %v is not from 1s to %v in whole seconds", p.Forgive, MaxWindow)
	}
	return nil
}
