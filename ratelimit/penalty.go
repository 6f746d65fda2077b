package ratelimit

import (
	"errors"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
)

// A Penalty says when a subject that keeps sending requests after it was limited is
// banned, and for how long. The zero Penalty never bans.
//
// Each limited request is a strike, except those that arrive within Grace of the first limited
// request in the window: they were in flight when it was answered. A window has one grace:
// none begins when a ban ends in it. The window belongs to the quota that refuses the longest,
// whichever quota refused the first request in it. So a day that is used up gives no grace of
// its own if a minute was used up before. The engine forgets one strike for each Decay that
// passes, and all strikes when it admits a request. It need not remember a limited request
// once all windows of the subject have ended that were open then. A limited request that would
// be one strike more than Strikes starts a ban. Requests during a ban change nothing.
//
// A client that waits at least Decay between its requests is therefore never
// banned. A client that doubles its pauses is never banned if Strikes is at least
// 2 + log2(Decay/Grace). If its first pause is longer than Grace, or the grace of the
// window is over, that pause counts instead of Grace. [DefaultPenalty] needs 5 strikes
// for this and has 10.
//
// The first ban lasts Ban. Each further one lasts Growth times the one before,
// at most Max. Each whole Forgive that passes after the end of a ban, without
// a new one, undoes one step of that growth.
//
// A client can tell a ban from a limit by X-RateLimit-Banned, and by the code in the body,
// api_key_banned or client_banned. During a ban X-RateLimit-Remaining is 0, and
// Retry-After covers the rest of the ban.
type Penalty struct {
	Strikes int           // strikes that do not start a ban, 1 to 10000; 0 in the zero Penalty only
	Grace   time.Duration // from the first limited request in a window, 0 to one hour; whole milliseconds
	Decay   time.Duration // time in which one strike is forgotten; whole seconds, 1s to 8784h; 0: 10s
	Ban     time.Duration // length of the first ban; whole seconds, 1s to 8784h
	Growth  int           // factor from one ban to the next, 1 to 100
	Max     time.Duration // longest ban; whole seconds, Ban to 8784h
	Forgive time.Duration // time without a ban that undoes one step; whole seconds, 1s to 8784h
}

// defaultDecay is the Decay of a Penalty with Strikes and without Decay.
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

func (p Penalty) validate() error {
	switch {
	case p == (Penalty{}):
		return nil
	case p.Strikes == 0:
		return errors.New("Penalty.Strikes must be from 1 to 10000, got 0; only the zero Penalty, which never bans, has 0")
	case p.Strikes < 1 || p.Strikes > 10_000:
		return fmt.Errorf("Penalty.Strikes must be from 1 to 10000, got %d", p.Strikes)
	case p.Grace < 0 || p.Grace > time.Hour || p.Grace%time.Millisecond != 0:
		return mustBe("Penalty.Grace", "whole milliseconds from 0s to 1h", p.Grace)
	case p.Decay != 0 && !isWholeSeconds(p.Decay):
		return mustBe("Penalty.Decay", wholeSeconds, p.Decay)
	}
	return p.validateBans()
}

// validateBans checks how long bans last.
func (p Penalty) validateBans() error {
	switch {
	case !isWholeSeconds(p.Ban):
		return mustBe("Penalty.Ban", wholeSeconds, p.Ban)
	case p.Growth < 1 || p.Growth > 100:
		return fmt.Errorf("Penalty.Growth must be from 1 to 100, got %d", p.Growth)
	case !isWholeSeconds(p.Max) || p.Max < p.Ban:
		return mustBe("Penalty.Max", "whole seconds from Penalty.Ban ("+durationText(p.Ban)+") to "+durationText(fixedwindow.MaxLength), p.Max)
	case !isWholeSeconds(p.Forgive):
		return mustBe("Penalty.Forgive", wholeSeconds, p.Forgive)
	}
	return nil
}
