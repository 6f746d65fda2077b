// Package lease decides requests under a shared limit in the memory of each process, and still
// exactly. It goes between the engine of ratelimit/redislimit and package failover:
//
//	shared, err := redislimit.New(client, redislimit.Options{})
//	...
//	leased, err := lease.New(shared)
//	...
//	defer leased.Close()
//	limiter, err := failover.New(leased, failover.Options{Local: embedded})
//
// A process that gets many requests of a subject charges some units in advance, a share of at
// most a hundredth of the limit. Then it admits requests without asking the engine, until the
// share is used up or one second old. It takes more in the background, and gives back what it
// does not use. It remembers a denial for 100 ms, and a ban for a second.
//
// # Never more than the limit
//
// A share is units that the engine has charged to every window of the plan. They are used
// while these windows are open, and otherwise given back to those that still are. So each
// admission is backed by a unit of its window, whatever dies, pauses or is cut off, and any
// number of processes admits at most the limit. [Limiter] says when a share ends.
//
// # What is weaker
//
//   - Units in the share of another process are refused here, and may stay unused: at most a
//     hundredth of the limit for each process. A share that gets no requests for a second is
//     given back. The share of a killed process is lost until its windows end, and so are
//     units that were on their way back when the engine did not answer.
//   - A share is given back in the background when its subject gets requests with another plan
//     or further charges. Until then the engine refuses its units to them.
//   - If a request with another plan opens a window, what other processes admit from their shares
//     in the next second is not counted in it: of each at most a hundredth of the share's limit.
//   - If the engine loses its last writes, as when a replica of Redis takes over, giving back a
//     share whose charge was lost lowers what others have used: by at most a hundredth of the limit
//     for each process.
//   - Remaining does not include what other processes have in their shares: it may rise when
//     they give units back.
//   - A ban by hand, an unban, a reset or a refund in another process takes effect within a
//     second. While the engine does not answer, shares serve until their windows end.
//   - The engine is told of strikes with the next question of a process, or within two seconds
//     of its last request. If the subject is then admitted, they are forgotten.
//
// # Which traffic
//
// Subjects that use more than some four units a second are decided here. There are no shares
// of limits below 800, nor when less than some sixteen units are left, but denials and bans are
// remembered. All others are decided by the engine, exactly as without this package. So are
// plans with a smooth quota, requests with further charges (TakeAll), and subjects that have
// windows of another plan. Plans are told apart by their pointer: keep the *Plan of a subject,
// since one that is made for each request makes a question of each.
package lease
