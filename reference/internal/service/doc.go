// Package service is the server as a process: it opens what the settings name, puts
// the parts together, serves until it is told to end, and puts everything away.
//
//	err := service.Run(ctx, settings, service.Options{Logger: logger, Notice: os.Stderr})
//
// # How it begins
//
// The listeners first, so that a port that is taken leaves no trace; then the
// database, the limiter with the usage that was saved, and the handlers. If the
// database has never held a key, one is made and shown once.
//
// # How it ends
//
// When ctx ends, the server is no longer ready, finishes the requests under way,
// ends the admin listener, saves usage and closes the database. Run returns nil if
// nothing was cut off and nothing lost.
package service
