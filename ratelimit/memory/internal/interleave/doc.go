// Package interleave is a test: it runs the code of package memory under every
// schedule of small cases, two or three callers with one or two calls each, and
// checks that some order of the calls explains what they were answered.
//
//	go test ./ratelimit/memory/internal/interleave
//	go test ./ratelimit/memory/internal/interleave -long -timeout 1h
//
// A failure prints each step of the schedule and the command that runs it again:
//
//	go test ./ratelimit/memory/internal/interleave -run 'TestSchedules/two_takes,_one_unit_left$' -v -schedule 'A15 B16 A1'
//
// where A15 means that thread A does 15 steps.
//
// # How it works
//
// The test copies the sources of package memory, replaces their imports of sync
// and sync/atomic by the packages of these names in this folder, and builds the
// command in run with the copies (go build -overlay). Nothing in package memory
// is there for the test.
//
// In that build each atomic operation, and each operation on a mutex, is a step:
// it asks the scheduler, package sched, before it does its work. The scheduler
// lets one thread run at a time, and tries all schedules with at most two
// preemptions, depth first. A preemption takes the turn from a thread that could
// go on within a call; to switch at the end of a call, or of what a thread can do
// without a lock that another one holds, is free. A schedule is left out if it
// differs from another one only in the order of steps that do not depend on each
// other. A panic, a deadlock and a run of more than 10,000 steps fail.
//
// Package cases holds the cases. After each schedule it asks the engine for its
// final state: where the subjects stand, how their next requests are decided, the
// list of bans and, in cases with Save, whether an engine that loads what was
// saved stands the same. Then it looks for an order of the calls in which
// ratelimittest.Model gives the same answers, in which no call comes after one
// that began when it had ended.
//
// The engine may differ from the model in two ways, which its documentation names.
// A call is decided by any time that the clock showed during the call, even if
// another call was decided by a later time before it. And at the bound, a new
// subject takes the place of one that has neither used half of a quota nor has
// strikes or a ban, or gets an error if there is none.
//
// A second test, TestFindsMutants, puts known mistakes into the copied sources and
// fails if the cases do not find them. If it does not find the text that a mutant
// replaces, update the mutant to the text that now does the same.
//
// # Limits
//
// The steps of a schedule are in one order that all threads agree on, as Go's
// memory model promises for atomics. Access to memory that is neither atomic nor
// under a lock is not a step; the race detector finds it. The clock is the
// cases'; timers do not run.
package interleave
