// Package admin is the admin listener, with which an operator sees what a running server
// does, and changes it: the http.Handler, its bodies in JSON, and a [Client].
//
//	handler, err := admin.New(admin.Config{Server: running, Checks: checks, Token: token})
//
// Endpoints, with the type of the answer in JSON:
//
//	       /console/         the console of package middleware/console; / leads there
//	GET    /healthz          200 as long as the process answers; checks nothing else
//	GET    /readyz           200 or 503, with the result of each check: [Readiness]
//	GET    /metrics          metrics for Prometheus
//	GET    /bans             the bans in force: {"bans": [...]} of [Ban]
//	POST   /bans             makes the ban of a [NewBan]: [Ban]
//	DELETE /bans?owner=NAME  unbans an owner, or with network=ADDRESS a network, and deletes its
//	                         strikes and earlier bans: {"unbanned": true}, or false without a ban
//	GET    /usage?owner=NAME what an owner has left and has used in the last 90 days: [Usage]
//	GET    /deprecations     the deprecated operations: {"deprecations": [...]} of [Deprecation]
//	GET    /debug/pprof/     profiles, as in package net/http/pprof
//
// While the server starts, /console/, /bans, /usage and /deprecations answer 503.
//
// With a token, every endpoint except /healthz and /readyz requires it, as a bearer token (RFC
// 6750) or as a password with any user name (RFC 7617). The endpoint /readyz shows the texts of
// errors only to clients that send it.
//
// Without a token, the listener must be on loopback, and requests for another host are
// refused with 421: a page in a browser on the machine could send them (DNS rebinding).
//
// Requests that a browser sends for a page of another origin (Sec-Fetch-Site, Origin) are
// refused with 403, except that a link can open the console.
//
// The log has a line for each request, without tokens. It has the address of the client, the
// method, the route, the status, and for a ban or an unban the subject and the outcome. The
// line of a GET that is answered has level Debug, except for profiles.
package admin
