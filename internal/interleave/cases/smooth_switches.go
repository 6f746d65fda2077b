package cases

import (
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// smoothSwitches are the cases of plans with another rate and burst of the same window.
func smoothSwitches() []Case {
	faster := ratelimit.MustPlan("faster", penalty, ratelimit.PerMinute(12).Smooth(3), ratelimit.PerDay(5))
	both := append(final("a", mixed, faster), final("b", mixed)...)
	return []Case{
		{
			Name:    "a take of a smooth quota beside one at another rate",
			setUp:   do(take("a", faster), take("a", mixed), clock(10*time.Second)),
			threads: threads(do(take("a", mixed), take("a", faster)), do(take("a", faster))),
			after:   final("a", mixed, faster),
		},
		{
			Name:    "a lower burst beside two takes of a smooth quota",
			setUp:   do(take("a", faster)),
			threads: threads(do(take("a", mixed)), do(take("a", faster)), do(take("a", faster))),
			after:   final("a", faster, mixed),
		},
		{
			Name:    "a group at another rate beside a refund",
			setUp:   do(take("a", mixed), take("b", mixed)),
			threads: threads(do(takeAll("b", mixed, with("a", faster))), do(refund("a"), take("a", mixed))),
			after:   both,
		},
		{
			Name:    "a group of smooth quotas beside a reset and a charge",
			setUp:   do(take("a", mixed), take("b", mixed)),
			threads: threads(do(takeAll("a", mixed, with("b", mixed))), do(reset("a"), charge(1, "b", mixed))),
			after:   both,
		},
	}
}
