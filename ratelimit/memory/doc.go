// Package memory is the embedded rate limiting engine, for one process. It is exact,
// its memory is bounded, and it has no dependencies.
//
//	engine, err := memory.New(memory.Options{MaxSubjects: 100_000})
//	...
//	d, err := engine.Take(ctx, "owner:17", plan, 1)
//
// It implements every interface of package ratelimit except [ratelimit.OnceUsageAdder].
// A request is decided at one instant, also about several subjects ([Limiter.TakeAll]):
// N concurrent requests against a limit of L admit exactly L. Two requests of one unit
// at 12:00:43, under the plan [60/minute 1000/day]:
//
//	         used of the minute   used of the day   decision
//	before       59 of 60           400 of 1000
//	Take         60 of 60           401 of 1000     allowed, 0 left until 12:01:00
//	Take         60 of 60           401 of 1000     limited, retry after 17 seconds
//
// # Memory
//
// A subject takes 40 to 50 bytes with two quotas: the engine keeps 63 bits of a keyed
// hash instead of its name. Among a million subjects, the chance that any two share
// their usage is one in eighteen million. Requests drop idle subjects in small steps.
//
// When MaxSubjects is reached, the engine takes a sample of subjects. A new subject
// replaces one without an open window or, if there is none, the one that has used
// least. The engine never replaces a subject
//
//   - that is banned,
//   - that has strikes, until the windows end that were open at the last strike,
//   - that has used half of the smallest limit, rounded down by less than an eighth,
//     that it had in a window, even after a change of plan or a restart. Of a smooth
//     quota, the limit in this rule is the burst.
//
// If the engine cannot replace any, a new subject gets an error that wraps
// [ratelimit.ErrUnavailable], and a strike without room is lost. [Stats] counts both.
//
// # Time
//
// The engine notices a step of the wall clock within ten milliseconds. From some
// hundred thousand decisions a second on, it uses a time that is late by about a
// millisecond: a request just after the end of a window may count in that window, if it
// has room, and a smooth quota may count a request as if it had come that much earlier.
// None is refused because of it. If the clock steps back by less than a minute, nothing is
// forgotten except subjects that were replaced.
//
// # Smooth quotas
//
// Decisions under a plan with a smooth quota take about one and a half to two times as
// long as those about fixed windows alone, and no lock either, unless the subject is new, a window
// begins, a strike is counted, or another decision about the subject is made meanwhile. A
// denial that ends within a second takes longer, because the engine then reads the exact
// time.
//
// # Restarts
//
// [Limiter.Save] writes what changed since its last call, and [Limiter.Load] reads it
// back. If Save is called once a second, a process that is killed loses at most the
// last second of usage. A store that appends what Save writes stays small with
// [Limiter.Records], which returns all records in a range of keys.
package memory
