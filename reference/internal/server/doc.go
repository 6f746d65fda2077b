// Package server runs the server: it opens what the settings name, connects the
// parts, serves until its context ends, and closes everything.
//
//	err := server.Run(ctx, settings, server.Options{Logger: logger, Notice: os.Stderr})
//
// # Start
//
// It opens the listeners first: if a port is in use, nothing on disk has changed. From
// then on the admin listener answers, and readiness says what the server is doing.
// Then it opens the database, loads the saved usage into the limiter, and creates the
// handlers. If the database has never held a key, it creates one and shows it once.
// Connections to the API wait until then. A damaged usage file is renamed, with a
// warning, and the server starts with a new one.
//
// # Reload
//
// While it serves, it reads the settings again on SIGHUP, and when their file or the
// certificate changes. It builds a new handler on the same database and limiter, and then
// replaces the handler in force, so that usage and bans stay and no request sees half of a
// change. Settings that were needed to open something, such as the database, need a restart,
// and so do the timeouts of connections, which net/http cannot change while it serves.
//
// # Stop
//
// When ctx ends, the server is no longer ready. It keeps serving for the drain delay,
// finishes running requests, saves usage, closes the database and the admin listener, and
// exports the last metrics and traces. Run returns nil if no request was cut off and
// nothing was lost, and also if ctx ends before the server serves.
package server
