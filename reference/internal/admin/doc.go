// Package admin serves the operator of the server: health,
// readiness, bans and profiles, as one http.Handler for a listener of its own.
//
//	handler, err := admin.New(admin.Config{Bans: limiter, Checks: checks, Token: token})
//
// What it serves:
//
//	GET    /healthz          200 as long as the process answers; looks at nothing else
//	GET    /readyz           200 or 503, with what each check says
//	GET    /bans             the bans in force
//	DELETE /bans?owner=NAME  unbans an owner, or with network=ADDRESS a network
//	GET    /debug/pprof/     profiles, as in package net/http/pprof
//
// With a token everything but /healthz and /readyz asks for it, as a bearer token
// (RFC 6750), and /readyz says what exactly is wrong only to clients that send it.
// A network that sends ten wrong tokens within a minute is answered with 429 until
// the minute ends, whatever token it sends then.
//
// Without a token the listener has to be on loopback, and requests that name another
// host are refused with 421: a page in a browser on the machine could send those
// (DNS rebinding).
//
// With and without a token, requests that a browser sends for a page of another
// origin are refused with 403, as Sec-Fetch-Site says.
//
// The log has a line for each request: the client's address, the method, the route,
// the status, and for a ban the subject and the outcome. It never has the token.
// Health checks are logged only if they are refused or send a wrong token.
//
// [Client] is the other end, for the command line.
package admin
