// Package console is a page for the operator of a service that limits its clients, and the same
// as JSON. It shows the decisions a second, and the clients that send the most requests with what
// they have used of their plans. It lists the bans in force and ends them. It also shows the
// engine, and the deprecated operations with the clients that still use them.
//
//	ops, err := console.New(limiter, console.Options{Title: "pets"})
//	...
//	limited, err := limit.New(limiter, identify, limit.Options{Observe: ops.Observe})
//	...
//	mux.Handle("/console/", requireOperator(ops))
//
// The console has no authentication: requireOperator is a middleware of the service that admits
// operators only. Mount the console at any path that ends in a slash, outside the limits.
//
//	GET  /console/               the page, which a script renews every five seconds
//	GET  /console/console.json   the same as JSON
//	POST /console/unban          ends the ban of the form value subject (303 to the page; 404: there is none)
//
// The form value is percent-encoded: the JSON has it beside each ban as unban. With ?last=day, it
// shows the busiest clients of the last day, and otherwise of the last minute. What an engine cannot
// do is not shown: without an engine.Banner there are no bans, and without an engine.Peeker the
// console does not say what clients have used. The numbers of an engine come from its method Stats.
//
// Each process counts the decisions that it makes, from its start on. Their sums are exact, but one
// can be missing until the next second. One client is counted for the last 50 to 60 seconds, and
// for the last 22 to 24 hours. Its counts are never too high, and exact as long as few clients are
// active. Under a flood of new clients, a client is short of about 1/500 of all decisions at most.
// A Console takes about 1 MB, and the names of the subjects that it holds. To count a decision
// takes about as long as package memory takes to make it.
//
// The page works without scripts, by keyboard, light and dark, and from 360 pixels on. Its
// Content-Security-Policy allows scripts and styles only from files of its own origin. Changes that
// a browser sends for a page of another origin are refused (http.CrossOriginProtection). A proxy
// in front must keep the Host field, or changes from the page itself can be refused too.
package console
