// Package activity counts the decisions of the last 60 seconds by owner and by
// network, so that an operator sees which clients are busy now.
//
//	counter := activity.New(time.Now)
//	counter.Count("owner:ada", false, ratelimit.Allowed) // for each decision
//	...
//	snapshot := counter.Snapshot(20)
//
// # Exactness
//
// The sums of all decisions are exact. The counts of one subject are never too high.
// They are exact as long as few subjects are active at once, and too low at most by a
// small share of all decisions under a flood of new subjects: each second is counted in
// 8 stripes, to which subjects are assigned by a random hash, and each stripe holds 32
// owners and 32 networks. A subject without a place takes that of the subject with the
// lowest count (the Space-Saving algorithm of Metwally, Agrawal and El Abbadi, 2005).
// Therefore what a subject is short of in a second is at most 1/32 of the decisions in
// its stripe, which is about 1/256 of all decisions about owners, or about networks.
// A subject with a larger share is always there.
//
// # Cost
//
// A Counter takes about 1.3 MB, whatever happens, and the names of the subjects that it
// holds. Count takes 0.1 to 0.2 microseconds, does not allocate, and locks only the
// stripe of its subject.
package activity
