package engine

import (
	"cmp"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A Penalty is a [ratelimit.Penalty] with its arithmetic:
//
//	left := engine.Penalty(plan.Penalty()).StrikesLeft(strikes, since, now)
type Penalty ratelimit.Penalty

// maxLevel bounds the steps that a ban grows. The longest ban is reached
// earlier with any growth over one.
const maxLevel = 255

// NextBan returns the level and the length of a ban that starts now. The last ban had the
// level last, and ended the time quiet ago; 0 for last means that there was none. The first
// ban has level one.
func (p Penalty) NextBan(last int, quiet time.Duration) (level int, length time.Duration) {
	if quiet > 0 && p.Forgive > 0 {
		last -= int(min(quiet/p.Forgive, maxLevel))
	}
	level, length = min(max(last, 0)+1, maxLevel), p.Ban
	for i := 1; i < level && length < p.Max && p.Growth > 1; i++ {
		if length > p.Max/time.Duration(p.Growth) {
			return level, p.Max
		}
		length *= time.Duration(p.Growth)
	}
	return level, min(length, p.Max)
}

// Strike adds a strike at the time now to the strikes of a subject. The oldest of them
// decays from the time since on, which is ignored if strikes is 0. Strike returns the new
// values of strikes and since. Times are Unix seconds, rounded down.
func (p Penalty) Strike(strikes int, since, now int64) (int, int64) {
	since = min(since, now) // the clock may have stepped back
	forgotten := (now - since) / p.decaySeconds()
	if forgotten >= int64(strikes) {
		return 1, now
	}
	return strikes - int(forgotten) + 1, since + forgotten*p.decaySeconds()
}

// StrikesLeft returns how many further strikes start no ban at the time now; -1 if the
// penalty never bans. The arguments are the same as for [Penalty.Strike].
func (p Penalty) StrikesLeft(strikes int, since, now int64) int {
	if p.Strikes == 0 {
		return -1
	}
	forgotten := max(now-since, 0) / p.decaySeconds()
	return p.Strikes - int(min(max(int64(strikes)-forgotten, 0), int64(p.Strikes)))
}

// decaySeconds is the Decay. A plan of ratelimit.NewPlan has one if it has Strikes.
func (p Penalty) decaySeconds() int64 {
	return int64(cmp.Or(p.Decay, 10*time.Second) / time.Second)
}
