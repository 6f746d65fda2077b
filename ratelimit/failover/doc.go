// Package failover puts a [ratelimit.Limiter] in front of a shared engine, the
// primary, that may be slow, hang, fail or be unreachable:
//
//	embedded, err := memory.New(memory.Options{})
//	...
//	limiter, err := failover.New(shared, failover.FailLocal, failover.Options{Local: embedded})
//	...
//	defer limiter.Close()
//
// # Budget
//
// A decision waits for the primary for at most [Options.Budget]. That holds even
// if the primary ignores its context, since each call has a goroutine of its
// own; there are at most [Options.Calls] of them. A primary that panics has
// failed.
//
// When the budget of a call is spent, its context ends and the fallback decides. If
// the primary answers after that, and has charged the request, one charge is taken
// back. If the local engine admitted the request as well, that is the charge in the
// journal or, once that is merged, the primary's, by a refund. If the request was
// not admitted, it is the primary's. In mode Open the primary's charge stays. If no
// answer ever comes, the request may be charged twice: once by the primary and once
// from the journal.
//
// # Circuit
//
// Failures open a circuit: [Options.Row] in a row, or [Options.Share] of the last
// 64 calls. An answer that is late, and every error, is a failure, except those
// that wrap [ratelimit.ErrInvalid] and those of a context that the caller ended.
//
// Failures that overlap count as one, since one short stall fails every call that
// is under way: a failure counts only if its call began after the last failure
// that counted was known. For each failure that does not count, one success does
// not count either, so that the share of failures stays the same. A primary that
// refuses connections therefore opens the circuit at once, and one that hangs
// opens it after Row budgets, half a second by default.
//
// While the circuit is open, no request calls the primary or waits for it.
//
// The primary is probed in the background, so that no request waits for it and the
// circuit closes without any traffic: first after [Options.FirstProbe], then after
// longer and longer waits. There is one probe at a time, during which the circuit is
// half-open. It takes one unit for the subject "failover:probe", under the quotas
// of the plan that failed last, within the budget. One that succeeds closes the
// circuit.
//
// There is one circuit for all subjects. If the primary has several parts, such as
// the masters of a cluster, and too few of them fail to open the circuit, a request
// to a failed part waits for its error, or for the budget, and the fallback then
// decides it.
//
// # Modes
//
// The mode says what decides while the primary does not, because the circuit is
// open or because a single call failed. It must be stated:
//
//	        a request is    it is counted       what is promised
//	Local   decided here    here, and later     each process keeps every plan's limits, and bans;
//	                        in the primary      the outage is counted, and no second quota after it
//	Open    admitted        nowhere             no request is denied because of the outage
//	Closed  an error        nowhere             no request is admitted without being counted
//
// In each of them, an invalid call is an error that wraps ratelimit.ErrInvalid.
//
// # Local
//
// Every process decides alone. Under a limit L, N processes that are cut off may
// together admit up to N times L. One process that is cut off may admit up to L in
// addition to what the others admit.
//
// The limiter remembers the primary's last decision about a subject that it denied,
// or that had used half of a quota ([Options.Shadow]), and the local engine begins
// with it: quotas exhausted and bans in force at the primary also apply here. A denial that comes after the budget is remembered
// too. No request of the subject is decided here before that, unless the local
// engine fails. Answers can overtake each other: of decisions that the primary
// made within a budget of each other, by its clock, the one with more usage counts
// as the last. A subject that had used less than half starts from zero, so that it
// gets less than one and a half of its quotas. Usage that this process has not seen,
// because other processes counted it, is not known here either. All of this needs a
// local engine that is a [ratelimit.Peeker].
//
// What the local engine admits is entered into a journal, by subject and window,
// of at most [Options.Journal] subjects. A full journal drops the subjects that used
// least. When the primary is back the usage is charged to it, in the windows that have
// not ended: one subject after the other in the background. A request whose
// subject is still in the journal merges it first, within the budget, so that no
// request is decided without that usage. If the process ends before, the journal is
// lost.
//
// If a charge fails, it stays in the journal and is repeated. If the primary is a
// [ratelimit.OnceUsageAdder], the charge keeps its mark, so that a charge whose
// answer was lost or late is made only once, as long as the primary remembers the
// mark. Any other primary may then be charged twice.
//
// Subjects do not wait for each other. If the primary fails to merge one of them,
// and then answers a probe, the subject is left out for a time that begins with
// [Options.FirstProbe] and doubles to at most [Options.LastProbe]. Until it is
// merged its requests are decided here. After a hundred failures it is dropped.
// A charge that the primary finds invalid is dropped at once. [Stats] counts both.
// [Limiter.Close] merges what it can, and returns an error with the number of
// subjects that are left.
//
// The primary is charged through [ratelimit.OnceUsageAdder] or [ratelimit.UsageAdder]
// if it is one. Otherwise it is charged through Take, under the plan without its
// penalty: as much as fits, and nothing during a ban. If the primary has already
// counted something in a short window, that window may then be charged too much.
//
// The clocks of this machine and of the primary should agree to within a small part
// of the shortest window. If one clock is ahead of
// the other, or steps back, usage in a window that has not begun on the other
// side is charged to that next window. A primary that is not a UsageAdder is
// charged in the window that is open there.
//
// Strikes and bans that the local engine gives are not merged. Commands are: while
// the circuit is open [Limiter.Ban], [Limiter.Unban] and [Limiter.Reset] take effect
// here, and in the primary as soon as it is back. They change two engines, one after
// the other. A request that comes before they
// return is decided by the old state or the new one.
//
// The local engine keeps its usage and bans until they end. If another process
// resets or unbans a subject at the primary, the local engine of this process does
// not notice.
//
// # Capabilities
//
// Peek, Refund, Reset, Ban, Unban and Bans go to the engine that decides at the
// moment. The primary must have the capability, and in mode Local the local engine
// as well; otherwise the error wraps [errors.ErrUnsupported].
package failover
