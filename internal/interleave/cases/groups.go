package cases

import "github.com/animalstore/gatehouse/ratelimit"

// with is one more charge of a group.
func with(subject string, plan *ratelimit.Plan) ratelimit.Charge {
	return ratelimit.Charge{Subject: subject, Plan: plan, Cost: 1}
}

// groups are the cases of several charges that are made together.
func groups() []Case {
	both := append(final("a", two), final("b", two)...)
	seen := do(take("a", two), take("b", two))
	return []Case{
		{
			Name:    "two groups that share both subjects",
			setUp:   seen,
			threads: threads(do(takeAll("a", two, with("b", two))), do(takeAll("b", two, with("a", two)))),
			after:   both,
		},
		{
			Name:    "two groups that share a subject with one unit left",
			setUp:   do(take("a", large), take("b", two), take("c", large)),
			threads: threads(do(takeAll("a", large, with("b", two))), do(takeAll("c", large, with("b", two)))),
			after:   append(final("a", large), append(final("b", two), final("c", large)...)...),
		},
		{
			Name:    "a group beside takes of both subjects",
			setUp:   seen,
			threads: threads(do(takeAll("a", two, with("b", two))), do(take("a", two)), do(take("b", two))),
			after:   both,
		},
		{
			Name:    "a group beside takes of both subjects by one caller",
			setUp:   seen,
			threads: threads(do(takeAll("a", two, with("b", two))), do(take("b", two), take("a", two))),
			after:   both,
		},
		{
			Name:    "a group beside peeks at both subjects",
			setUp:   seen,
			threads: threads(do(takeAll("a", two, with("b", two))), do(peek("b", two), peek("a", two)), do(peek("a", two), peek("b", two))),
			after:   both,
		},
		{
			Name:    "three subjects, the last of which has one unit left",
			setUp:   do(take("a", large), take("b", large), take("c", two)),
			threads: threads(do(takeAll("a", large, with("b", large), with("c", two))), do(take("c", two), take("b", large)), do(take("a", large))),
			after:   append(final("a", large), append(final("b", large), final("c", two)...)...),
		},
		{
			Name:    "a group of subjects never seen",
			threads: threads(do(takeAll("a", two, with("b", two))), do(takeAll("b", two, with("a", two))), do(take("b", two))),
			after:   both,
		},
		{
			Name:    "groups of subjects with locks of their own",
			max:     1 << 14,
			threads: threads(do(takeAll("a", two, with("b", two))), do(takeAll("b", two, with("a", two)))),
			after:   both,
		},
		{
			Name:    "a group of a subject never seen and one with nothing left",
			setUp:   do(cost(2, "b", two)),
			threads: threads(do(takeAll("a", two, with("b", two))), do(take("a", two)), do(refund("b"))),
			after:   both,
		},
		{
			Name:    "a group beside a refund",
			setUp:   do(take("a", two), cost(2, "b", two)),
			threads: threads(do(takeAll("a", two, with("b", two)), takeAll("a", two, with("b", two))), do(refund("b"))),
			after:   both,
		},
		{
			Name:    "a group that is refused within the grace beside takes",
			setUp:   do(take("a", graceful), cost(2, "b", graceful), take("b", graceful)),
			threads: threads(do(takeAll("a", graceful, with("b", graceful))), do(take("a", graceful)), do(refund("b"), take("b", graceful))),
			after:   append(final("a", graceful), final("b", graceful)...),
		},
		{
			Name:    "a group that is refused within the grace beside takes of both subjects",
			setUp:   do(take("a", graceful), take("b", graceful), cost(2, "b", graceful)),
			threads: threads(do(takeAll("a", graceful, ratelimit.Charge{Subject: "b", Plan: graceful, Cost: 2})), do(take("a", graceful), take("b", graceful))),
			after:   append(final("a", graceful), final("b", graceful)...),
		},
		{
			Name:    "two strikes of a group",
			setUp:   do(take("a", two), cost(2, "b", two)),
			threads: threads(do(takeAll("a", two, with("b", two))), do(takeAll("a", two, with("b", two)))),
			after:   both,
		},
		{
			Name:    "a group beside a ban and an unban",
			setUp:   seen,
			threads: threads(do(takeAll("a", two, with("b", two))), do(ban("a"), unban("a"))),
			after:   both,
		},
		{
			Name:    "a group beside a reset",
			setUp:   seen,
			threads: threads(do(takeAll("a", two, with("b", two))), do(reset("a")), do(take("b", two))),
			after:   both,
		},
		{
			Name:    "a group beside a plan switch",
			setUp:   seen,
			threads: threads(do(takeAll("a", two, with("b", two))), do(take("a", other)), do(take("b", two))),
			after:   append(final("a", two, other), final("b", two)...),
		},
		{
			Name:    "a group beside a save",
			setUp:   seen,
			threads: threads(do(takeAll("a", two, with("b", two)), take("a", two)), do(save)),
			after:   append(do(peek("a", two), peek("b", two)), both...),
		},
		{
			Name:    "a group beside a table that grows",
			setUp:   append(fill(5), take("a", large)),
			threads: threads(do(takeAll("a", large, with("b", large))), do(take("a", large)), do(take("c", large))),
			after:   append(final("a", large), final("b", large)...),
		},
		{
			Name:    "three groups in a ring",
			Large:   true,
			setUp:   do(take("a", two), take("b", two), take("c", two)),
			threads: threads(do(takeAll("a", two, with("b", two))), do(takeAll("b", two, with("c", two))), do(takeAll("c", two, with("a", two)))),
			after:   append(both, final("c", two)...),
		},
	}
}
