// Package usage keeps across restarts what a server otherwise knows only in its
// memory: the state of the embedded rate limiter, which is usage and bans, and the
// use of deprecated operations by owner.
//
//	limiter, err := usage.Load(ctx, db, memory.Options{})
//	...
//	uses := usage.NewDeprecated(time.Now)
//	saver := usage.StartSaver(logger,
//		usage.LimiterTask(limiter, db, time.Now), uses.Task(keys))
//	...
//	err = saver.Close()
//
// A process that is killed loses what happened since the last save: at most one
// second of usage, as long as the database takes what it is given.
package usage
