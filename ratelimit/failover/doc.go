// Package failover puts a [ratelimit.Limiter] in front of a shared engine, the
// primary, that may be slow, hang, fail or be gone:
//
//	embedded, err := memory.New(memory.Options{})
//	...
//	limiter, err := failover.New(shared, failover.Local, failover.Options{Local: embedded})
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
// A call whose budget is spent is told so through its context, and the fallback
// decides. If the primary answers late that it charged the request, the charge
// is taken back where the fallback admitted the request too, or nobody did: from
// the journal, or else by a refund. A charge of which no answer ever comes
// cannot be told from none: the request may then be charged twice, once by the
// primary and once by the journal.
//
// # Circuit
//
// Failures open a circuit: [Options.Row] in a row, or [Options.Share] of the last
// 64 calls. An answer that is late, and every error, is a failure, except those
// that wrap [ratelimit.ErrInvalid] and those of a context that the caller ended.
//
// Failures that overlap count as one, since one short stall fails every call that
// is under way: a failure counts only if its call began after the last failure
// that counted was known. The share of failures stays what it is, because each
// failure that does not count is set off against one success. A primary that
// refuses connections therefore opens the circuit at once, and one that hangs
// after Row budgets, half a second by default.
//
// While the circuit is open the primary is not called for any request, and a
// request costs what the fallback costs.
//
// The primary is probed in the background, so that it comes back without any
// traffic and no request waits for it: first after [Options.FirstProbe], then
// ever more seldom. There is one probe at a time, during which the circuit is
// half-open. It takes one unit for the subject "failover:probe", under the quotas
// of the plan that failed last, within the budget. One that succeeds closes the
// circuit.
//
// There is one circuit for all subjects. If the primary has several parts, and so
// few of them fail that the circuit stays closed, each request that meets one of
// these waits for its error, or for the budget, and is then decided by the
// fallback.
//
// # Modes
//
// What decides while the primary does not, because the circuit is open or
// because a single call failed, has to be stated:
//
//	        a request is    it is counted       what is promised
//	Local   decided here    here, and later     each process keeps every plan's limits, and bans;
//	                        in the primary      the outage is counted, and no second quota after it
//	Open    admitted        nowhere             nobody is denied on account of the outage
//	Closed  an error        nowhere             nobody is admitted who was not counted
//
// In each of them, an invalid call is an error that wraps ratelimit.ErrInvalid.
//
// # Local
//
// Every process decides alone: of a limit L, N processes together may admit up
// to N times L while they are cut off, and one process that loses the primary
// while others do not admits up to L beside them.
//
// What the primary said last is not lost. Of a subject that it denied, or that
// had used half of a quota, the last decision is remembered ([Options.Shadow]),
// and the local engine begins with it: quotas exhausted and bans in force at the
// primary also apply here. A denial that comes after the budget is remembered
// too. No request of the subject is decided here before that, unless the local
// engine fails. Answers can overtake each other: of decisions that the primary
// made within a budget of each other, by its clock, the one that says that more
// was used counts as the last. A subject that had used less than half begins
// afresh, so that it gets less than one and a half of its quotas. So does a
// subject as far as its usage was counted for other processes, and this one has
// not seen it. This takes a local engine that can peek.
//
// What the local engine admits is entered into a journal, by subject and window,
// of at most [Options.Journal] subjects. A full one drops those that used least.
// When the primary is back the usage is charged to it, in the windows that have
// not ended: one subject after the other in the background. A request whose
// subject has not had its turn takes its usage along, within the budget, so that
// no request is decided without it. A process that ends before takes its journal
// with it.
//
// If a charge fails, it stays in the journal and is repeated. If the primary is a
// [ratelimit.OnceCharger], the charge keeps its mark, so that a charge whose
// answer was lost or too late is made once, as long as the primary remembers the
// mark. Any other primary may then be charged twice.
//
// Subjects do not wait for each other. If the primary fails to merge one of them,
// and then answers a probe, the subject is left out for a time that begins with
// [Options.FirstProbe] and doubles to at most [Options.LastProbe]. Until it is
// merged its requests are decided here. After a hundred failures it is dropped.
// What the primary finds invalid is dropped at once. [Stats] counts both.
// [Limiter.Close] merges what it can, and returns an error with the number of
// subjects that are left.
//
// The primary is charged through [ratelimit.OnceCharger] or [ratelimit.Charger]
// if it is one. Otherwise it is charged through Take, under the plan without its
// penalty: as much as fits, and nothing during a ban. If the primary has already
// counted something in a short window, that window may then be charged with what
// was used in a longer one; it errs to the strict side.
//
// Windows are told apart by the clocks of this machine and of the primary, which
// should agree as well as the shortest window requires. If one clock is ahead of
// the other, or steps back, usage in a window that has not begun on the other
// side is charged to that next window. A primary that is not a Charger is
// charged in the window that is open there.
//
// Strikes and bans that the local engine gives are not carried over. Those by
// hand are: while the circuit is open [Limiter.Ban], [Limiter.Lift] and
// [Limiter.Reset] hold here, and in the primary as soon as it is back. They
// change two engines, one after the other. A request that comes before they
// return is decided by the old state or the new one.
//
// The local engine keeps what it has counted, and the bans that it was told of,
// until they end. If another process resets a subject or lifts its ban at the
// primary, the local engine of this one does not learn of it.
//
// # Capabilities
//
// Peek, Refund, Reset, Ban, Lift and Bans go to whichever engine is in charge.
// They need the capability in the primary, and in mode Local in the local engine
// as well; without it their error wraps [errors.ErrUnsupported].
package failover
