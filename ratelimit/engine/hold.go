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
	// Adjust of the engine ends the hold of a charge. Call it with the charge, the id, and what
	// the request costs in all, also if that is what it was charged. The process keeps its holds
	// alive. If it dies, or cannot reach the engine, for as long as lease, from 1s to 1h, the hold
	// ends by itself: the units are given back once, to the windows that the charge reached. An
	// engine may wait with that until the next held charge of the subject, and does it before it
	// decides about that. A later Adjust charges the units of the request anew.
	//
	// Units of smooth quotas come back in any case. So they are not given back when a hold ends by
	// itself, and Adjust changes them by the difference.
	//
	// After an Adjust that failed, the hold is not kept alive, and the call can be repeated for
	// ten minutes. If the answer to a held charge is lost, or the context ends first, the charge
	// is held too, and given back when the lease ends.
	Hold(id string, lease time.Duration) ratelimit.Limiter
}
