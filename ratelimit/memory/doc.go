// Package memory is the embedded rate limiting engine: exact, bounded, without
// dependencies, for one process.
//
//	engine, err := memory.New(memory.Options{MaxSubjects: 100_000})
//	...
//	d, err := engine.Take(ctx, "owner:17", plan, 1)
//
// It has every capability of package ratelimit: peeking, resetting, refunds, and
// bans. It starts no goroutine and needs no closing; requests drop idle subjects
// in small steps.
//
// # Exactness
//
// Ban, quotas and cost of a request are decided at one instant. An admission is
// one compare-and-swap, whatever the number of quotas: a subject's slot holds a
// meter that only counts up, and for each window the meter's reading at its
// beginning. Rarer changes (a window begins, a strike, a ban, a new subject) take
// the lock of one of many segments. They freeze the subject meanwhile, so that
// every other request sees all of the change or nothing of it.
//
// The engine knows a subject by 63 bits of a keyed hash of its name, as the name
// would take more memory than the subject's state. Among a million subjects the
// chance that any two of them share a slot is one in eighteen million.
//
// # Memory
//
// A subject takes 32 bytes with two quotas, in tables that are between two
// thirds and four fifths full and hold no pointers, so that garbage collection
// does not look at them. A subject with more than two open windows makes the
// slots of its segment larger, until a round of sweeps finds no such subject.
//
// The engine holds at most MaxSubjects. At that bound a new subject takes the
// place of one whose windows are over, or else of the one of a sample that has
// used least. It never takes the place of a subject that is held. A subject is
// held
//
//   - while it is banned,
//   - while it has strikes, until the windows are over that were open at the last
//     strike, and
//   - while it has used half of a quota.
//
// For the last of these the engine remembers the smallest limit of each window,
// among all plans under which a request of the subject was decided while the window
// had usage. The limit is rounded down by less than an eighth. A window that has
// reached half of it holds the subject until the window ends, or until a refund
// takes its usage below that half. Another plan, a larger limit or a restart does
// not change that. Strikes and bans take a second place of the bound, which is held
// until those windows are over and every ban is forgiven.
//
// If every subject of the segment is held, a new subject gets an error that wraps
// [ratelimit.ErrUnavailable], and a strike that needs a second place is not
// remembered. [Stats] counts both.
//
// The subjects that have a place at one time may have 15,358 different
// combinations of windows and limits. Beyond that the engine no longer tells the
// limits apart: it holds a subject with a combination that is new from its first
// unit on. These subjects may have 1,024 different combinations of windows. A
// subject with one more gets an error that wraps [ratelimit.ErrUnavailable].
//
// # Time
//
// The engine reads the system's monotonic clock for each decision, and notices a
// step of the wall clock within ten milliseconds. At some hundred thousand
// decisions a second it changes to a time that a timer keeps, which is late by
// about a millisecond, and by more on a machine without a core to spare; the
// timer ends when the traffic does. No request is refused because of that delay: if a
// window or ban ends within a second, the exact time decides. A request just after
// the end of a window may be counted in that window, if it has room.
//
// A subject is kept for a minute after its last window ended, so that a clock
// which steps back by less finds every account as it was. At the bound a new
// subject may take its place earlier. A clock that steps back by more than an
// hour leaves no subject's usage in its place for longer than two windows and the
// time until a sweep finds it. A ban or strikes keep their place until the time
// that the clock said before the step.
//
// # Restarts
//
// [Limiter.Save] passes on what has changed since the last call, and
// [Limiter.Load] reads it back: usage, the limits that it was measured by,
// strikes, bans and their levels. If Save is called once a second, a process that
// is killed loses at most the last second of usage.
package memory
