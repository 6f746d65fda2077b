package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A client that could speak HTTP with the backend through the gateway would pass all
// middlewares by.
func TestUpgradeToHTTP(t *testing.T) {
	for upgrade, want := range map[string]string{
		"h2c": "", "H2C": "", "websocket, h2c": "", "HTTP/2.0": "", "TLS/1.2,HTTP/1.1": "", "h2": "",
		"websocket": "websocket", "SPDY/3.1": "SPDY/3.1", "echo": "echo", "h2cat": "h2cat",
	} {
		t.Run(upgrade, func(t *testing.T) {
			s := newStack(t, to(t, func(w http.ResponseWriter, r *http.Request) {
				setAll(w.Header(), "Saw-Upgrade: "+r.Header.Get("Upgrade")+"\nSaw-Connection: "+r.Header.Get("Connection")+
					"\nSaw-Settings: "+r.Header.Get("Http2-Settings"))
			}), ratelimit.Options{})
			srv, _ := listen(t, s, false)
			resp, _ := raw(t, srv, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: "+upgrade+"\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n")
			connection, settings := "", ""
			if want != "" {
				connection, settings = "Upgrade", "AAMAAABkAAQAAP__"
			}
			if got := resp.Header.Get("Saw-Upgrade"); resp.StatusCode != 200 || got != want {
				t.Errorf("%d, the backend gets Upgrade: %q, want 200 with %q", resp.StatusCode, got, want)
			}
			if got := resp.Header.Get("Saw-Connection"); got != connection {
				t.Errorf("the backend gets Connection: %q, want %q", got, connection)
			}
			if got := resp.Header.Get("Saw-Settings"); got != settings {
				t.Errorf("the backend gets HTTP2-Settings: %q, want %q", got, settings)
			}
		})
	}
}

// ServeMux and middlewares do not resolve %2e%2e; many backends do. A path that is public
// here must not be another one there.
func TestDotSegments(t *testing.T) {
	for path, refused := range map[string]bool{
		"/public/../admin": true, "/public/%2e%2e/admin": true, "/public/%2E./admin": true, "/public/..%2fadmin": true,
		"/public/..%5cadmin": true, "/public/..;x=1/admin": true, "/admin/.": true, "/%2e/admin": true, "/..": true,
		"/public/...": false, "/public/a..b": false, "/.well-known/x": false, "/public/..a": false, "/public//x": false,
		"/public/%252e%252e/admin": false, "/a?x=/../": false,
	} {
		t.Run(path, func(t *testing.T) {
			arrived := ""
			s := newStack(t, to(t, func(_ http.ResponseWriter, r *http.Request) { arrived = r.RequestURI }), ratelimit.Options{})
			srv, _ := listen(t, s, false)
			resp, body := raw(t, srv, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n")
			if refused {
				if arrived != "" || resp.StatusCode != 400 || !strings.HasPrefix(body, `{"code":"invalid_request",`) {
					t.Errorf("%d %s, the backend gets %q; want 400 invalid_request from the gateway", resp.StatusCode, body, arrived)
				}
				wantMiddlewares(t, resp.Header)
			} else if resp.StatusCode != 200 || arrived != path {
				t.Errorf("%d, the backend gets %q, want 200 and %q", resp.StatusCode, arrived, path)
			}
		})
	}
}
