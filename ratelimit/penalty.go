package ratelimit

import (
	"fmt"
	"time"
)

// A Penalty says what happens to a subject that goes on after it was limited.
//
// Each limited request is a strike, except those that arrive within Grace of
// the first one in the window, which were on their way when it was answered.
// An admitted request clears the strikes, so that a client which backs off
// exponentially is never banned. The strike that is one more than Strikes
// starts a ban. Requests during a ban change nothing.
//
// The first ban lasts Ban. Each further one lasts Growth times the one before,
// at most Max. Each whole Forgive that passes after the end of a ban, without
// a new one, takes one step of that growth back.
//
// The zero Penalty never bans.
type Penalty struct {
	Strikes int           // strikes that are endured, 1 to 10000; 0: never ban
	Grace   time.Duration // from the first limited request in a window, 0 to one hour; whole milliseconds
	Ban     time.Duration // length of the first ban; whole seconds, at least one
	Growth  int           // factor from one ban to the next, 1 to 100
	Max     time.Duration // longest ban; whole seconds, Ban to MaxWindow
	Forgive time.Duration // quiet time that takes one step back; whole seconds, at least one, at most MaxWindow
}

// DefaultPenalty returns the penalty of ten strikes and two seconds of grace
// whose bans begin at one minute, double up to a day, and are forgiven a step
// a day.
func DefaultPenalty() Penalty {
	return Penalty{
		Strikes: 10,
		Grace:   2 * time.Second,
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

func (p Penalty) validate() error {
	if p == (Penalty{}) {
		return nil
	}
	switch {
	case p.Strikes < 1 || p.Strikes > 10_000:
		return fmt.Errorf("strikes %d is not from 1 to 10000", p.Strikes)
	case p.Grace < 0 || p.Grace > time.Hour || p.Grace%time.Millisecond != 0:
		return fmt.Errorf("grace %v is not from 0 to 1h in whole milliseconds", p.Grace)
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
