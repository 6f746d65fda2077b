package cases

import (
	"fmt"
	"time"
)

// moves are the cases in which slots move, in their table or to another one.
func moves() []Case {
	first, second, third := neighbours()
	front := inFront("a")
	three := do(take(first, large), take(second, large), take(third, large))
	return []Case{
		{
			Name:    "a reset of the subject in front",
			setUp:   three,
			threads: threads(do(reset(first)), do(take(second, large), take(second, large)), do(take(third, large))),
			after:   append(final(second, large), final(third, large)...),
		},
		{
			Name:    "resets of two subjects in front",
			setUp:   three,
			threads: threads(do(reset(first), reset(second)), do(take(third, large), take(third, large))),
			after:   append(final(second, large), final(third, large)...),
		},
		{
			Name:    "a reset, and a new subject in its slot",
			setUp:   do(take(first, large), take(second, large)),
			threads: threads(do(reset(first), take(third, large)), do(take(first, large)), do(take(second, large))),
			after:   append(final(first, large), append(final(second, large), final(third, large)...)...),
		},
		{
			Name:    "a subject in front that has expired",
			setUp:   do(take(first, hour), take(second, day), clock(3*time.Hour)),
			threads: threads(do(take(third, day), take("a", day)), do(take(second, day), take(second, day))),
			after:   append(final(second, day), final(third, day)...),
		},
		{
			Name:    "a table that grows",
			setUp:   append(fill(5), take("a", large)),
			threads: threads(do(take("b", large)), do(take("a", large), take("a", large))),
			after:   append(final("a", large), final("b", large)...),
		},
		{
			Name:    "a table that grows for two",
			setUp:   append(fill(4), take("a", large)),
			threads: threads(do(take("b", large)), do(take("c", large)), do(take("a", large))),
			after:   append(final("a", large), append(final("b", large), final("c", large)...)...),
		},
		{
			Name:    "a table that grows beside a ban",
			setUp:   append(fill(5), take("a", large)),
			threads: threads(do(take("b", large)), do(ban("a")), do(take("a", large))),
			after:   append(final("a", large), final("b", large)...),
		},
		{
			Name:    "the record of a limited request that moves",
			setUp:   do(take(front, large), cost(2, "a", graceful), take("a", graceful)),
			threads: threads(do(reset(front)), do(take("a", graceful), take("a", graceful))),
			after:   final("a", graceful),
		},
		{
			Name:    "the record of a ban that moves",
			setUp:   do(take(front, large), take("a", two), ban("a")),
			threads: threads(do(reset(front)), do(unban("a")), do(take("a", two))),
			after:   final("a", two),
		},
		{
			Name:    "slots that get wider for another subject",
			setUp:   do(take("a", two), take("b", two)),
			threads: threads(do(take("a", wide)), do(take("b", two), take("b", two))),
			after:   append(final("a", wide), final("b", two)...),
		},
	}
}

// fill returns requests for so many subjects that are asked for nothing more.
func fill(n int) (calls []call) {
	for i := range n {
		calls = append(calls, take(fmt.Sprint("filler ", i), large))
	}
	return calls
}

// bound are the cases at the largest number of subjects.
func bound() []Case {
	return []Case{
		{
			Name: "a new subject at the bound, beside a take of the one it replaces", max: 1,
			setUp:   do(take("a", large)),
			threads: threads(do(take("b", large).evicting("a")), do(take("a", large).evicting("b"))),
			after:   do(peek("a", large), peek("b", large)),
		},
		{
			Name: "a new subject at the bound, beside a take that reaches half of a quota", max: 1,
			setUp:   do(cost(4, "a", large)),
			threads: threads(do(take("b", large).evicting("a")), do(take("a", large).evicting("b"))),
			after:   do(peek("a", large), peek("b", large)),
		},
		{
			Name: "a new subject at the bound, beside a ban", max: 2,
			setUp:   do(take("a", large)),
			threads: threads(do(take("b", large).evicting("a")), do(ban("a").evicting("a", "b")), do(take("a", large).evicting("b"))),
			after:   do(peek("a", large), peek("b", large), bans),
		},
		{
			Name: "a new subject at the bound, beside a refund of one that is held", max: 1,
			setUp:   do(cost(5, "a", large)),
			threads: threads(do(take("b", large).evicting("a"), take("b", large).evicting("a")), do(refund("a"))),
			after:   do(take("b", large).evicting("a"), peek("a", large), peek("b", large)),
		},
		{
			Name: "a new subject at the bound, while a window ends of one that is held", max: 1,
			setUp: do(cost(5, "a", large)),
			threads: threads(do(take("b", large).evicting("a"), take("b", large).evicting("a")),
				do(clock(2*time.Second), take("a", large).evicting("b"))),
			after: do(peek("a", large), peek("b", large)),
		},
		{
			Name: "two new subjects at the bound", max: 2,
			setUp: do(cost(5, "a", large), take("b", large)),
			threads: threads(do(take("c", large).evicting("b", "d")), do(take("d", large).evicting("b", "c")),
				do(take("b", large).evicting("c", "d"))),
			after: do(peek("a", large), peek("b", large), peek("c", large), peek("d", large)),
		},
	}
}
