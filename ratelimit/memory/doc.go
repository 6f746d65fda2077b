// Package memory is the embedded rate limiting engine: exact, bounded, without
// dependencies, for one process.
//
//	engine, err := memory.New(memory.Options{MaxSubjects: 100_000})
//	...
//	d, err := engine.Take(ctx, "owner:17", plan, 1)
//
// It has every capability of package ratelimit, starts no goroutine and needs no
// closing. Ban, quotas and cost of a request are decided at one instant: N concurrent
// requests against a limit L admit exactly L. Two requests of one unit at 12:00:43,
// under the plan [60/minute 1000/day]:
//
//	         used of the minute   used of the day   decision
//	before       59 of 60           400 of 1000
//	Take         60 of 60           401 of 1000     allowed, 0 left until 12:01:00
//	Take         60 of 60           401 of 1000     limited, retry after 17 seconds
//
// # Memory
//
// A subject takes 40 to 50 bytes with two quotas: the engine knows it by 63 bits of a
// keyed hash. Among a million subjects, the chance that any two share an account is
// one in eighteen million. Requests drop idle subjects in small steps.
//
// At the bound, MaxSubjects, a new subject replaces one that has no open window or,
// if a sample has none, the one of the sample that has used least. It never replaces
// one that is held:
//
//   - while it is banned,
//   - while it has strikes, until the windows end that were open at the last strike,
//   - while it has used half of the smallest limit, rounded down by less than an
//     eighth, that it met in a window. Another plan or a restart does not change that.
//
// If all are held, a new subject gets an error that wraps [ratelimit.ErrUnavailable],
// and a strike that needs a place is not remembered. [Stats] counts both.
//
// # Time
//
// The engine notices a step of the wall clock within ten milliseconds. At some hundred
// thousand decisions a second it uses a time that a timer updates, which is late by
// about a millisecond. No request is refused because of that: if a window or ban ends
// within a second, the exact time decides. A request just after the end of a window
// may count in that window, if it has room. If the clock steps back by less than a
// minute, every account is as it was, except those that were replaced at the bound.
//
// # Restarts
//
// [Limiter.Save] writes what changed since its last call, and [Limiter.Load] reads it
// back. If Save is called once a second, a process that is killed loses at most the
// last second of usage.
package memory
