package ratelimit

import (
	"time"

	"github.com/animalstore/gatehouse/internal/plan"
)

// Outcome is what an engine decided about a request. The zero value is the outcome of
// a request that no engine has decided.
type Outcome uint8

const (
	Allowed   Outcome = iota + 1 // the request was admitted and charged
	Limited                      // a quota is exhausted; nothing was charged
	Banned                       // the subject is banned, or was banned by this request; nothing was charged
	Suspended                    // the plan refuses every request; nothing was charged
	Skipped                      // the subject could be charged, but was not, since another one was refused; see [TakeAll]
)

// String returns "allowed", "limited", "banned", "suspended", "skipped" or "undecided".
func (o Outcome) String() string {
	switch o {
	case Allowed:
		return "allowed"
	case Limited:
		return "limited"
	case Banned:
		return "banned"
	case Suspended:
		return "suspended"
	case Skipped:
		return "skipped"
	}
	return "undecided"
}

// State is what is left of one quota after the request was decided.
type State struct {
	// Remaining is what is left in the window, 0 to the limit: 59 units after the first of
	// 60. Of a smooth quota it is what can be used at once, 0 to the burst. Of a soft quota it is
	// 9007199254740991 less what is used; see [Decision.Used].
	Remaining int64
	// Reset is when the window ends, or a smooth quota is unused: Unix time in seconds,
	// rounded up.
	Reset int64
}

// A Decision is what an engine decided about one request. It is a value: its
// copies share the Plan and the reason of a ban, which nothing changes, and nothing else.
//
// At 12:00:43 UTC an owner has used 59 units of this minute and 400 of this day, and
// sends two requests of one unit each:
//
//	                     first                         second
//	Outcome              Allowed                       Limited: nothing is charged
//	States[0] (minute)   0 of 60 left, until 12:01:00  0 of 60 left, until 12:01:00
//	States[1] (day)      599 of 1000, until 24:00:00   599 of 1000, until 24:00:00
//	Applicable           0, the minute                 0, the minute
//	RetryAfter           0                             17s
//	headers              X-RateLimit-Limit: 60         the same, and Retry-After: 17
//	                     X-RateLimit-Remaining: 0
//	                     X-RateLimit-Reset: 1772366460
type Decision struct {
	Outcome Outcome
	// Struck says that this denial was a strike; see [Penalty]. If the Outcome is Banned, it
	// was one strike too many and started the ban. It is false for requests within the
	// grace and during a ban, in shadow mode, and for an engine that counts no strikes.
	Struck bool
	// CountsUnits says that requests of the service differ in cost, so that texts count units
	// and not requests. The middleware sets it if limit.Options.Cost is set.
	CountsUnits bool
	Plan        *Plan // nil if nothing was decided
	Cost        int64 // units that the request costs
	// Time is the engine's clock when it decided, in Unix nanoseconds; 0 if the plan
	// decided alone, see [SuspendedPlan].
	Time int64
	// States holds a State for each of the plan's quotas, in their order; what
	// is beyond them is zero.
	States [4]State
	// Receipt is what the engine needs beside States to adjust the charge: see Adjuster in
	// package engine. It also has the reason of a ban.
	Receipt Receipt
	// Applicable is the index of the quota that the headers show. If the request was
	// admitted, it is the quota with the least remaining and, on a tie, the later
	// reset. If it was denied, it is the exhausted quota that refuses it the longest: that
	// with the latest reset, unless a quota is smooth. If a ban alone refuses it, it is
	// chosen as for an admission.
	Applicable int
	// RetryAfter is how long to wait until a request of this cost is admitted,
	// if nothing else uses the quota meanwhile: positive if it was limited or banned,
	// otherwise 0. It covers every exhausted quota and any ban.
	RetryAfter time.Duration
	// BanEnds is the Unix time in seconds, rounded up, at which the ban ends; 0
	// without a ban.
	BanEnds int64
	// StrikesLeft is how many further limited requests start no ban, however fast they
	// come. One more starts a ban if all of them come after the grace and before a strike
	// decays. It rises as strikes decay, so that a slow client is never banned. It is
	// negative if the plan's penalty never bans.
	StrikesLeft int
}

// A Receipt is the part of a [Decision] that only engines read: what they need beside its States
// to adjust the charge, and the reason of a ban. Package engine says what authors of engines
// find in it.
type Receipt struct{ receipt }

type receipt = plan.Receipt // a name that hides it on the page of the package

// Equal reports whether the receipts have the same content, for packages such as go-cmp.
func (r Receipt) Equal(o Receipt) bool {
	a, b := &Decision{Receipt: r}, &Decision{Receipt: o}
	return a.BanReason() == b.BanReason() && r.Rounded == o.Rounded && r.Others == o.Others
}

// Allowed reports whether the request was admitted.
func (d *Decision) Allowed() bool { return d.Outcome == Allowed }

// BanReason returns why the subject is banned: "strikes" if it kept sending requests after
// it was limited, "by hand", or the text of the operator. It returns "" without a ban.
// Engines set it in the Receipt; a ban without a reason is answered like one of strikes.
func (d *Decision) BanReason() string {
	if d.Receipt.BanReason == nil {
		return ""
	}
	return *d.Receipt.BanReason
}

// Limit returns the limit of the applicable quota, of a smooth one the burst:
// X-RateLimit-Limit. Limit, Used, Remaining and Reset are 0 if the plan is nil or has no quotas.
func (d *Decision) Limit() int64 {
	if d.Plan == nil {
		return 0
	}
	return d.Plan.Numbers().Quota(d.Applicable).Shown
}

// Used returns how many units of the i-th quota of the plan are used after the request: 41 if 19
// of 60 are left, and of a smooth quota what is missing of the burst. Of a soft quota it may be
// more than the limit, of others it is at most that.
func (d *Decision) Used(i int) int64 {
	if d.Plan == nil {
		return 0
	}
	return d.Plan.Numbers().Quota(i).AtOnce() - d.States[i].Remaining
}

// Remaining returns what is left of the applicable quota, and 0 during a ban or if a soft
// quota is used up: X-RateLimit-Remaining.
func (d *Decision) Remaining() int64 {
	if d.Outcome == Banned {
		return 0
	}
	return max(d.Limit()-d.Used(d.Applicable), 0)
}

// Reset returns when the applicable quota resets, in Unix seconds, and never a
// time before the end of a ban: X-RateLimit-Reset.
func (d *Decision) Reset() int64 {
	return max(d.States[d.Applicable].Reset, d.BanEnds)
}
