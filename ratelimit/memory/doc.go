// Package memory is the embedded rate limiting engine, for one process. It is exact,
// its memory is bounded, and it has no dependencies.
//
//	limiter, err := memory.New(memory.Options{MaxSubjects: 100_000})
//	...
//	d, err := limiter.Take(ctx, "owner:17", plan, 1)
//
// It implements every interface of packages ratelimit and engine. A request, also about several
// subjects ([Limiter.TakeAll]), is decided at one instant: N concurrent requests against a
// limit of L admit exactly L. Two requests at 12:00:43, under the plan [60/minute 1000/day]:
//
//	         used of the minute   used of the day   decision
//	before       59 of 60           400 of 1000
//	Take         60 of 60           401 of 1000     allowed, 0 left until 12:01:00
//	Take         60 of 60           401 of 1000     limited, retry after 17 seconds
//
// # Memory
//
// A subject with two quotas takes 40 to 50 bytes: the engine keeps only 63 bits of
// a keyed hash of its name. Among a million, the chance that any two share their usage is
// one in eighteen million. Requests drop idle subjects in small steps. While a subject has
// used 2³² units or more of a window, up to 4,096 subjects take 8 to 10 bytes more.
// Refunds under a smooth quota take up to 1 KB.
//
// When MaxSubjects is reached, a new subject replaces one of a sample: one without an open
// window, or else the one that has used the smallest share of any quota. The engine looks at
// 128 places at most, other ones each time, and never replaces a subject
//
//   - that is banned,
//   - that has strikes, until the windows end that were open at the last strike,
//   - that has used half of the smallest limit, or burst, that one of its windows had, also
//     after a change of plan or a restart. That limit is rounded down by less than an eighth.
//
// If these places have none to replace, a new subject gets an error that wraps
// [ratelimit.ErrUnavailable], and a strike without room is lost. [Stats] counts both.
//
// # Time
//
// The engine notices a step of the wall clock within ten milliseconds. From some hundred
// thousand decisions a second on, it uses a time about a millisecond late. A request just after
// the end of a window may count in it, if it has room, and one under a smooth quota as if it
// had come that much earlier. None is refused because of it, but a RetryAfter of a second or
// more may be that much too long. After a step back by less than a minute, it has forgotten
// replaced subjects, and windows that ended before it, only.
//
// Decisions about smooth quotas, and about windows of which 2³² units or more are used, take
// about 1.5 to 2 times as long as those about other windows alone. A denial that ends within a
// second takes half as long again.
//
// # Restarts
//
// [Open] keeps the state in a file, [Limiter.Save] and [Limiter.Load] in a database.
package memory
