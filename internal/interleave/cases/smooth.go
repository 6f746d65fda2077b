package cases

import (
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// Two units at once, and one more every ten seconds.
var (
	drops   = ratelimit.PerMinute(6).Smooth(2)
	smooth  = ratelimit.MustPlan("smooth", penalty, drops)
	mixed   = ratelimit.MustPlan("mixed", penalty, drops, ratelimit.PerDay(4))
	double  = ratelimit.MustPlan("double", penalty, drops, ratelimit.PerHour(60).Smooth(3))
	deep    = ratelimit.MustPlan("deep", penalty, ratelimit.PerMinute(6).Smooth(4)) // a unit is less than half
	lenient = ratelimit.MustPlan("lenient", patient, drops, ratelimit.PerDay(4))
)

// smoothTakes are the cases of smooth quotas. The word of a bucket changes with each charge,
// without the lock too.
func smoothTakes() []Case {
	return []Case{
		{
			Name:    "two takes of a smooth quota, one unit left",
			setUp:   do(take("a", mixed)),
			threads: threads(do(take("a", mixed)), do(take("a", mixed))),
			after:   final("a", mixed),
		},
		{
			Name:    "three takes of a full bucket",
			setUp:   do(take("a", smooth), clock(time.Hour)),
			threads: threads(do(take("a", smooth)), do(take("a", smooth)), do(take("a", smooth))),
			after:   final("a", smooth),
		},
		{
			Name:    "two takes of two smooth quotas of a new subject",
			threads: threads(do(take("a", double), take("a", double)), do(take("a", double))),
			after:   final("a", double),
		},
		{
			Name:    "two takes of a smooth quota while a unit comes back",
			setUp:   do(cost(2, "a", mixed), clock(5*time.Second)),
			threads: threads(do(take("a", mixed)), do(take("a", mixed)), do(clock(10*time.Second))),
			after:   final("a", mixed),
		},
		{
			Name:    "two takes of a smooth quota while the clock steps back",
			setUp:   do(clock(2*time.Minute), take("a", mixed)),
			threads: threads(do(take("a", mixed)), do(take("a", mixed)), do(clock(-2*time.Minute))),
			after:   final("a", mixed),
		},
		{
			Name:    "a plan switch from a smooth quota beside takes",
			setUp:   do(take("a", mixed)),
			threads: threads(do(take("a", two)), do(take("a", mixed), take("a", mixed))),
			after:   final("a", two, mixed),
		},
		{
			Name:    "a plan switch to a smooth quota beside a take",
			setUp:   do(take("a", two)),
			threads: threads(do(take("a", double)), do(take("a", mixed)), do(take("a", two))),
			after:   final("a", mixed, double),
		},
		{
			Name:    "takes under a fixed plan beside one of a smooth quota",
			setUp:   do(take("a", mixed)),
			threads: threads(do(take("a", day), take("a", day)), do(take("a", mixed))),
			after:   final("a", mixed, day),
		},
		{
			Name:    "peeks beside a take of smooth quotas",
			setUp:   do(take("a", double)),
			threads: threads(do(peek("a", double), peek("a", double)), do(take("a", double))),
			after:   final("a", double),
		},
		{
			Name:    "a refund beside takes of a smooth quota",
			setUp:   do(cost(2, "a", mixed)),
			threads: threads(do(refund("a")), do(take("a", mixed), take("a", mixed))),
			after:   final("a", mixed),
		},
		{
			Name:    "a charge beside a take of a smooth quota",
			setUp:   do(take("a", mixed)),
			threads: threads(do(charge(1, "a", mixed)), do(take("a", mixed))),
			after:   final("a", mixed),
		},
		{
			Name:    "a reset beside two takes of a smooth quota",
			setUp:   do(take("a", mixed)),
			threads: threads(do(reset("a")), do(take("a", mixed), take("a", mixed))),
			after:   final("a", mixed),
		},
		{
			Name:    "a save beside two takes of a smooth quota",
			setUp:   do(take("a", mixed)),
			threads: threads(do(save), do(take("a", mixed), take("a", mixed))),
			after:   final("a", mixed),
		},
	}
}

// smoothDenials are the cases of strikes and bans.
func smoothDenials() []Case {
	spared := do(cost(2, "a", lenient), take("a", lenient))
	return []Case{
		{
			Name:    "two strikes of a smooth quota",
			setUp:   do(cost(2, "a", mixed)),
			threads: threads(do(take("a", mixed)), do(take("a", mixed))),
			after:   final("a", mixed),
		},
		{
			Name:    "a strike of a smooth quota while a unit comes back",
			setUp:   do(cost(2, "a", mixed), take("a", mixed), clock(5*time.Second)),
			threads: threads(do(take("a", mixed)), do(clock(5*time.Second)), do(take("a", mixed))),
			after:   final("a", mixed),
		},
		{
			Name:    "a ban beside takes of a smooth quota",
			setUp:   do(take("a", mixed)),
			threads: threads(do(ban("a")), do(take("a", mixed), take("a", mixed))),
			after:   final("a", mixed),
		},
		{
			Name:    "an unban beside two takes of a smooth quota",
			setUp:   do(take("a", mixed), ban("a")),
			threads: threads(do(unban("a")), do(take("a", mixed), take("a", mixed))),
			after:   final("a", mixed),
		},
		{
			Name:    "a request within the grace of a smooth quota, beside a refund",
			setUp:   spared,
			threads: threads(do(take("a", lenient), take("a", lenient)), do(refund("a"))),
			after:   final("a", lenient),
		},
		{
			Name:    "a larger request within the grace of a smooth quota, beside a take",
			setUp:   do(take("a", lenient), cost(2, "a", lenient)),
			threads: threads(do(cost(2, "a", lenient)), do(take("a", lenient))),
			after:   final("a", lenient),
		},
		{
			Name:    "a request within the grace of a smooth quota, while a unit comes back",
			setUp:   do(cost(2, "a", lenient), clock(9*time.Second), take("a", lenient)),
			threads: threads(do(take("a", lenient)), do(clock(time.Second)), do(take("a", lenient))),
			after:   final("a", lenient),
		},
		{
			Name:    "a request that is refused for a moment, beside a refund and a later clock",
			setUp:   do(cost(2, "a", lenient), clock(9500*time.Millisecond), take("a", lenient)),
			threads: threads(do(take("a", lenient)), do(refund("a"), clock(100*time.Millisecond))),
			after:   final("a", lenient),
		},
	}
}

// smoothPlaces are the cases in which slots with smooth quotas move or end.
func smoothPlaces() []Case {
	first, second, third := neighbours()
	return []Case{
		{
			Name:    "a table that grows beside a take of a smooth quota",
			setUp:   append(fill(5), take("a", mixed)),
			threads: threads(do(take("b", large)), do(take("a", mixed), take("a", mixed))),
			after:   append(final("a", mixed), final("b", large)...),
		},
		{
			Name:    "a reset of the subject in front of two with smooth quotas",
			setUp:   do(take(first, large), take(second, mixed), take(third, mixed)),
			threads: threads(do(reset(first)), do(take(second, mixed)), do(take(third, mixed))),
			after:   append(final(second, mixed), final(third, mixed)...),
		},
		{
			Name:    "a subject with a full bucket, which new ones sweep away beside a take",
			setUp:   do(take("a", smooth), clock(time.Hour)),
			threads: threads(do(take("b", large), take("c", large)), do(take("a", smooth))),
			after:   append(final("a", smooth), final("b", large)...),
		},
		{
			Name: "a new subject at the bound, beside a take of one with a full bucket", max: 1,
			setUp:   do(take("a", deep), clock(20*time.Second)),
			threads: threads(do(take("b", large).evicting("a")), do(take("a", deep).evicting("b"))),
			after:   do(peek("a", deep), peek("b", large)),
		},
	}
}

// smoothGroups are the cases of groups of charges.
func smoothGroups() []Case {
	both := append(final("a", mixed), final("b", mixed)...)
	seen := do(take("a", mixed), take("b", mixed))
	group := takeAll("a", mixed, with("b", mixed))
	return []Case{
		{
			Name:    "two groups that share smooth quotas of both subjects",
			setUp:   seen,
			threads: threads(do(group), do(takeAll("b", mixed, with("a", mixed)))),
			after:   both,
		},
		{
			Name:    "a group beside takes of smooth quotas by one caller",
			setUp:   seen,
			threads: threads(do(group), do(take("b", mixed), take("a", mixed))),
			after:   both,
		},
		{
			Name:    "a group of a smooth quota and fixed windows beside takes",
			setUp:   do(take("a", smooth), take("b", two)),
			threads: threads(do(takeAll("a", smooth, with("b", two))), do(take("a", smooth)), do(take("b", two))),
			after:   append(final("a", smooth), final("b", two)...),
		},
		{
			Name:    "a group of which the smooth quota of the second refuses, beside takes",
			setUp:   do(take("a", lenient), take("b", lenient), cost(2, "b", lenient)),
			threads: threads(do(takeAll("a", lenient, ratelimit.Charge{Subject: "b", Plan: lenient, Cost: 2})), do(take("a", lenient), take("b", lenient))),
			after:   append(final("a", lenient), final("b", lenient)...),
		},
		{
			Name:    "a group of smooth quotas beside peeks",
			setUp:   seen,
			threads: threads(do(group), do(peek("b", mixed), peek("a", mixed)), do(peek("a", mixed), peek("b", mixed))),
			after:   both,
		},
		{
			Name:    "a group of smooth quotas beside a ban and an unban",
			setUp:   seen,
			threads: threads(do(group), do(ban("a"), unban("a"))),
			after:   both,
		},
		{
			Name:    "a group of smooth quotas beside a save",
			setUp:   seen,
			threads: threads(do(group, take("a", mixed)), do(save)),
			after:   append(do(peek("a", mixed), peek("b", mixed)), both...),
		},
	}
}
