package cases

import "time"

// penalties are the cases of strikes and bans.
func penalties() []Case {
	limited := do(cost(2, "a", two)) // the next request is a strike
	striked := do(cost(2, "a", two), take("a", two))
	banned := do(take("a", two), ban("a"))
	spared := do(cost(2, "a", graceful), take("a", graceful)) // the next request is answered without a lock
	return []Case{
		{
			Name:    "two strikes that start a ban",
			setUp:   limited,
			threads: threads(do(take("a", two)), do(take("a", two))),
			after:   final("a", two),
		},
		{
			Name:    "three strikes, one too many",
			Large:   true,
			setUp:   limited,
			threads: threads(do(take("a", two)), do(take("a", two)), do(take("a", two))),
			after:   final("a", two),
		},
		{
			Name:    "a strike beside an unban",
			setUp:   striked,
			threads: threads(do(take("a", two)), do(unban("a"))),
			after:   final("a", two),
		},
		{
			Name:    "a strike beside a refund",
			setUp:   striked,
			threads: threads(do(take("a", two)), do(refund("a"), take("a", two))),
			after:   final("a", two),
		},
		{
			Name:    "a strike while a window begins",
			setUp:   striked,
			threads: threads(do(take("a", two)), do(take("a", two)), do(clock(2*time.Second))),
			after:   final("a", two),
		},
		{
			Name:    "a strike beside a reset",
			setUp:   striked,
			threads: threads(do(take("a", two)), do(reset("a"), take("a", two))),
			after:   final("a", two),
		},
		{
			Name:    "a ban beside a take",
			setUp:   do(take("a", two)),
			threads: threads(do(ban("a")), do(take("a", two), take("a", two))),
			after:   final("a", two),
		},
		{
			Name:    "a ban of a new subject beside a take",
			threads: threads(do(ban("a")), do(take("a", two), take("a", two))),
			after:   final("a", two),
		},
		{
			Name:    "a ban beside a plan switch",
			setUp:   do(take("a", two)),
			threads: threads(do(ban("a")), do(take("a", wide)), do(take("a", two))),
			after:   final("a", two),
		},
		{
			Name:    "a ban beside a charge and a take",
			setUp:   do(take("a", two)),
			threads: threads(do(ban("a")), do(charge(1, "a", two)), do(take("a", two))),
			after:   final("a", two),
		},
		{
			Name:    "a ban beside a save",
			setUp:   do(take("a", two), save),
			threads: threads(do(ban("a")), do(save), do(take("a", two))),
			after:   final("a", two),
		},
		{
			Name:    "an unban beside two takes",
			setUp:   banned,
			threads: threads(do(unban("a")), do(take("a", two), take("a", two))),
			after:   final("a", two),
		},
		{
			Name:    "an unban beside a ban and a take",
			setUp:   banned,
			threads: threads(do(unban("a")), do(ban("a")), do(take("a", two))),
			after:   final("a", two),
		},
		{
			Name:    "a ban that ends beside takes",
			setUp:   do(take("a", large), ban("a"), clock(time.Minute)),
			threads: threads(do(take("a", large)), do(take("a", large)), do(clock(time.Second))),
			after:   final("a", large),
		},
		{
			Name:    "a limited request within the grace, beside a refund",
			setUp:   spared,
			threads: threads(do(take("a", graceful), take("a", graceful)), do(refund("a"))),
			after:   final("a", graceful),
		},
		{
			Name:    "a limited request within the grace, beside a ban and an unban",
			setUp:   spared,
			threads: threads(do(take("a", graceful), take("a", graceful)), do(ban("a"), unban("a"))),
			after:   final("a", graceful),
		},
		{
			Name:    "a limited request within the grace, beside a reset",
			setUp:   spared,
			threads: threads(do(take("a", graceful), take("a", graceful)), do(reset("a"))),
			after:   final("a", graceful),
		},
		{
			Name:    "a limited request within the grace, while a window begins",
			setUp:   spared,
			threads: threads(do(take("a", graceful)), do(clock(2*time.Second)), do(take("a", graceful))),
			after:   final("a", graceful),
		},
		{
			Name:    "strikes beside a refund, a ban and an unban",
			Large:   true,
			setUp:   striked,
			threads: threads(do(take("a", two), take("a", two)), do(refund("a"), take("a", two)), do(ban("a"), unban("a"))),
			after:   final("a", two),
		},
	}
}
