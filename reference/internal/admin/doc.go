// Package admin is the side of the server that is for its operator: health,
// readiness, bans and profiles, as one http.Handler for a listener of its own.
//
//	handler, err := admin.New(admin.Config{Bans: limiter, Checks: checks, Token: token})
//
// What it serves:
//
//	GET    /healthz          200 as long as the process answers; looks at nothing else
//	GET    /readyz           200 or 503, with what each check says
//	GET    /bans             the bans in force
//	DELETE /bans?owner=NAME  lifts the ban of an owner, or with network=ADDRESS of a network
//	GET    /debug/pprof/     profiles, as in package net/http/pprof
//
// With a token everything but /healthz and /readyz asks for it, as a bearer token
// (RFC 6750), and /readyz tells only those who send it what exactly is wrong.
// Without one the listener has to be on loopback, and requests that name another
// host are refused: a page in a browser on the machine could send those (DNS
// rebinding).
//
// [Client] is the other end, for the command line.
package admin
