package cases

import "time"

// takes are the cases of requests for one subject.
func takes() []Case {
	return []Case{
		{
			Name:    "two takes, one unit left",
			setUp:   do(take("a", two)),
			threads: threads(do(take("a", two)), do(take("a", two))),
			after:   final("a", two),
		},
		{
			Name:    "three takes, two units left",
			setUp:   do(take("a", wide)),
			threads: threads(do(take("a", wide)), do(take("a", wide)), do(take("a", wide))),
			after:   final("a", wide),
		},
		{
			Name:    "takes of different cost",
			threads: threads(do(cost(2, "a", two), take("a", two)), do(take("a", two), take("a", two))),
			after:   final("a", two),
		},
		{
			Name:    "two takes of a new subject",
			threads: threads(do(take("a", two)), do(take("a", two))),
			after:   final("a", two),
		},
		{
			Name:    "two takes of two new subjects",
			threads: threads(do(take("a", two), take("b", two)), do(take("b", two), take("a", two))),
			after:   append(final("a", two), final("b", two)...),
		},
		{
			Name:    "two takes while a window begins",
			setUp:   do(take("a", two), take("a", two)),
			threads: threads(do(take("a", two)), do(take("a", two)), do(clock(2*time.Second))),
			after:   final("a", two),
		},
		{
			Name:    "takes of one caller while a window begins",
			setUp:   do(take("a", two)),
			threads: threads(do(take("a", two), take("a", two)), do(clock(2*time.Second), take("a", two))),
			after:   final("a", two),
		},
		{
			Name:    "two takes while the clock steps back",
			setUp:   do(clock(2*time.Second), take("a", two)),
			threads: threads(do(take("a", two)), do(take("a", two)), do(clock(-2*time.Second))),
			after:   final("a", two),
		},
		{
			Name:    "a plan switch beside a take",
			setUp:   do(take("a", two)),
			threads: threads(do(take("a", other)), do(take("a", two))),
			after:   final("a", two, other),
		},
		{
			Name:    "a plan switch beside a take, after a refund",
			setUp:   do(take("a", two), refund("a")),
			threads: threads(do(take("a", other)), do(take("a", two))),
			after:   final("a", two, other),
		},
		{
			Name:    "a plan switch beside a take, with one window more",
			setUp:   do(take("a", two)),
			threads: threads(do(take("a", wide)), do(take("a", two), take("a", two))),
			after:   final("a", two, wide),
		},
		{
			Name:    "a take with a window of another plan beside a reset",
			setUp:   do(take("a", two)),
			threads: threads(do(take("a", day)), do(reset("a"), take("a", day))),
			after:   final("a", day),
		},
		{
			Name:    "two plan switches",
			Large:   true,
			setUp:   do(take("a", two)),
			threads: threads(do(take("a", other)), do(take("a", wide)), do(take("a", two))),
			after:   final("a", two, other, wide),
		},
		{
			Name:    "takes beside a reset and a plan switch while a window begins",
			Large:   true,
			setUp:   do(take("a", two)),
			threads: threads(do(take("a", two), take("a", two)), do(reset("a"), take("a", other)), do(clock(2*time.Second))),
			after:   final("a", two, other),
		},
	}
}

// others are the cases of what is done to a subject's usage beside requests.
func others() []Case {
	return []Case{
		{
			Name:    "a refund beside a take",
			setUp:   do(take("a", two), take("a", two)),
			threads: threads(do(refund("a")), do(take("a", two))),
			after:   final("a", two),
		},
		{
			Name:    "a refund of all beside two takes",
			setUp:   do(cost(2, "a", two)),
			threads: threads(do(refund("a")), do(take("a", two), take("a", two))),
			after:   final("a", two),
		},
		{
			Name:    "a refund beside a plan switch",
			setUp:   do(take("a", two)),
			threads: threads(do(refund("a")), do(take("a", other)), do(take("a", two))),
			after:   final("a", two, other),
		},
		{
			Name:    "a charge beside a take",
			setUp:   do(take("a", two)),
			threads: threads(do(charge(1, "a", two)), do(take("a", two))),
			after:   final("a", two),
		},
		{
			Name:    "a charge beside a take of a new subject",
			threads: threads(do(charge(2, "a", two)), do(take("a", two))),
			after:   final("a", two),
		},
		{
			Name:    "a charge beside a refund and a take",
			setUp:   do(take("a", two)),
			threads: threads(do(charge(1, "a", two)), do(refund("a")), do(take("a", two))),
			after:   final("a", two),
		},
		{
			Name:    "a peek beside a take",
			setUp:   do(take("a", two)),
			threads: threads(do(peek("a", two), peek("a", two)), do(take("a", two))),
			after:   final("a", two),
		},
		{
			Name:    "a reset beside two takes",
			setUp:   do(take("a", two)),
			threads: threads(do(reset("a")), do(take("a", two), take("a", two))),
			after:   final("a", two),
		},
		{
			Name:    "a reset beside a plan switch",
			setUp:   do(take("a", two)),
			threads: threads(do(reset("a")), do(take("a", wide)), do(take("a", two))),
			after:   final("a", two, wide),
		},
		{
			Name:    "a save beside two takes",
			setUp:   do(take("a", two)),
			threads: threads(do(save), do(take("a", two), take("a", two))),
			after:   final("a", two),
		},
		{
			Name:    "a save beside a reset and a take",
			setUp:   do(take("a", two), save),
			threads: threads(do(save), do(reset("a")), do(take("a", two))),
			after:   final("a", two),
		},
	}
}
