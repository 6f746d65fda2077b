// Package service is the server as a process: it opens what the settings name, puts
// the parts together, serves until its context ends, and closes everything.
//
//	err := service.Run(ctx, settings, service.Options{Logger: logger, Notice: os.Stderr})
//
// # How it begins
//
// It opens the listeners first, so that a port in use changes nothing on disk. The admin
// listener answers from then on; readiness says what the server is doing. Then it
// opens the database, loads the usage that was saved into the limiter, and makes the
// handlers. If the database has never held a key, it makes one and shows it once.
// Connections to the API wait until then. A usage file that is damaged is renamed,
// with a warning, and a new one takes its place.
//
// # How it ends
//
// When ctx ends, the server is no longer ready. It keeps serving for the drain
// delay, finishes the requests under way, saves usage, closes the database, and ends the
// admin listener. Run returns nil if nothing was cut off and nothing lost, also if
// ctx ends before the server serves.
package service
