package console_test

import (
	"net/http"
	"strings"
	"testing"
)

// While the server starts, the page says so. When it goes away, the page says that, and
// it recovers by itself.
func TestConsoleSaysWhenTheServerIsAway(t *testing.T) {
	t.Parallel()
	api := busy()
	for _, path := range []string{"/top", "/audit", "/deprecations"} {
		api.answers[path] = http.StatusServiceUnavailable
	}
	api.set("/state", object{"build": object{"version": "v0.3.0"}, "uptime": 1, "ready": false, "checks": object{"server": "starting: loading usage"}})
	p, server := open(t, api)
	p.WaitText(t, "#unready", "The server is not ready. server: starting: loading usage")
	p.WaitText(t, "#decisions .error", "The server is still starting.")
	p.Screenshots(t, "console-starting", "body")
	ready := busy()
	for _, path := range []string{"/state", "/top", "/audit", "/deprecations"} {
		api.set(path, ready.answers[path])
	}
	p.WaitText(t, "#health", "^ready$")
	p.WaitText(t, "#per-second", "312")
	for _, selector := range []string{"#decisions", "#audit", "#deprecations"} {
		if got := p.WaitText(t, selector, "ada|312"); strings.Contains(got, "still starting") {
			t.Errorf("the page still says that the server starts: %s", got)
		}
	}

	server.Listener.Close()
	server.CloseClientConnections()
	p.WaitText(t, "#away", "The server does not answer. It cannot be reached.")
	p.WaitText(t, "#health", "^no answer$")
	p.Screenshots(t, "console-away", "body")
}
