// Package persist saves across restarts what a server keeps in memory: the state of
// the embedded rate limiter, which is usage and bans, the requests of each owner by
// day, and the use of deprecated operations by owner.
//
//	limiter, err := persist.Load(ctx, db, memory.Options{})
//	...
//	uses, days := persist.NewDeprecatedUse(time.Now), persist.NewDailyUse(time.Now)
//	saver := persist.StartSaver(logger,
//		persist.LimiterTask(limiter, db), uses.Task(keys), days.Task(keys))
//	...
//	err = saver.Close()
//
// A process that is killed loses what happened since the last save: at most one
// second of usage, and ten seconds of the requests by day, as long as the database can be
// written.
package persist
