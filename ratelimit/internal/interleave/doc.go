// Package interleave is a test: it runs the code of package memory under every
// schedule of small cases, two or three callers with one or two calls each, and
// checks that some order of the calls explains their answers.
//
//	go test ./ratelimit/internal/interleave
//	go test ./ratelimit/internal/interleave -long -timeout 1h
//
// A failure prints each step of the schedule and the command that runs it again:
//
//	go test ./ratelimit/internal/interleave -run TestSchedules -v -case 'two takes, one unit left' -schedule 'A15 B16 A1'
//
// where A15 means that thread A does 15 steps.
//
// # How it works
//
// The test copies the sources of package memory, replaces their imports of sync,
// sync/atomic and runtime by the packages of these names in this folder, and builds the
// command in run with the copies (go build -overlay). Nothing in package memory
// is there for the test.
//
// In that build each atomic operation, and each operation on a mutex, is a step: it
// asks the scheduler, package sched, before it does its work. So is runtime.Gosched,
// which waits until another thread writes to the place that was read last. The scheduler
// lets one thread run at a time, and tries all schedules with at most one preemption, two
// with -long, depth first. A preemption stops a thread in the middle of a call
// although it could continue. A switch at the end of a call, or when a thread waits
// for a lock, is not a preemption. A schedule is left out if it differs from another
// one only in the order of steps that do not depend on each other. A panic, a deadlock
// and a run of more than 10,000 steps fail.
//
// Command run holds the cases. After each schedule it asks the engine for its final state:
// the usage of the subjects, the decisions on their next requests, the list of bans and, in
// cases with Save, whether an engine that loads what was saved has the same state. Then it
// looks for an order of the calls in which enginetest.Model gives the same answers (type
// explainer). Calls that did not overlap keep their order.
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
