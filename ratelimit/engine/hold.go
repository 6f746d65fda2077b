package engine

import (
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A Holder makes charges that do not stay if their process dies: for requests whose cost is
// settled later. Engines may implement it.
type Holder interface {
	// Hold returns a view of the engine for one request. What its Take charges, and its
	// TakeAll if the engine is a [MultiTaker], is held under id, a random text of the request.
	//
	// The hold of each charge lasts until the engine's Adjust is called with the charge, the id
	// and what the request costs in all, which may be what it was charged. As long as the process
	// lives and reaches the engine, the hold is renewed, whatever the lease is. When it was not
	// renewed for lease, from 1s to 1h, the units of the charge are given back once, to the windows
	// that it reached. An engine may do that as late as when the subject is next asked for a held charge,
	// before it decides about that. Adjust then charges the units of the request anew.
	//
	// Units of smooth quotas are not given back when a hold ends by itself: they come back in any
	// case, and Adjust changes them by the difference. An Adjust that failed can be repeated for ten
	// minutes, but the hold is not renewed after it. What a call charges whose answer is lost, or
	// whose context ends first, is held too, and given back when the lease ends.
	Hold(id string, lease time.Duration) ratelimit.Limiter
}
