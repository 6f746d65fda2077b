// Package memory is the embedded rate limiting engine: exact, bounded, without
// dependencies, for one process.
//
//	engine, err := memory.New(memory.Options{MaxSubjects: 100_000})
//	...
//	d, err := engine.Take(ctx, "owner:17", plan, 1)
//
// It has every capability of package ratelimit: peeking, resetting, refunds, and
// bans. It starts no goroutine and needs no closing; what is idle is dropped in
// small steps by the traffic itself.
//
// # Exactness
//
// Ban, quotas and cost of a request are decided at one instant. An admission is
// one compare-and-swap, whatever the number of quotas: a subject's slot holds a
// meter that only counts up, and for each window the meter's reading at its
// beginning. Whatever is rarer (a window begins, a strike, a ban, a new subject)
// is done under the lock of one of many segments.
//
// A subject is known by 64 bits of a keyed hash of its name, as a subject's name
// would take more memory than its state. Among a million subjects the chance
// that any two of them share a slot is one in thirty million.
//
// # Memory
//
// A subject takes 32 bytes with two quotas, in tables that are between two
// thirds and four fifths full and hold no pointers, so that garbage collection
// does not look at them. At most MaxSubjects are held. At that bound a new
// subject takes the place of one whose windows are over, or else of the one of a
// sample that has used least. A subject that is banned, has strikes, or has used
// half of a quota is never forgotten for another; when there is nobody else, a
// new subject gets an error that wraps [ratelimit.ErrUnavailable], and a strike
// that needs a place of its own is not remembered. All this is counted in [Stats].
//
// # Time
//
// The engine reads the system's monotonic clock for each decision, and notices a
// step of the wall clock within ten milliseconds. At some hundred thousand
// decisions a second it goes over to a time that a timer keeps, which is late by
// about a millisecond, and by more on a machine without a core to spare; the
// timer ends when the traffic does. Nobody is refused for that: a subject whose
// window or ban ends within a second is decided by the exact time. A request just
// after the end of a window may be counted to that window, if it has room.
//
// A subject is kept for a minute after its last window ended, so that a clock
// which steps back by less finds every account as it was.
//
// # Restarts
//
// [Limiter.Save] passes on what has changed since it was called last, and
// [Limiter.Load] takes it in again. Saved once a second, a killed process loses
// at most the last second of usage.
package memory
