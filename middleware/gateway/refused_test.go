package gateway_test

import (
	"net/http"
	"net/http/httputil"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/middleware/limit"
)

// A client that could speak HTTP with the backend through the gateway would pass all
// middlewares by. HTTP/1.0 has no upgrades (RFC 9110 section 7.8).
func TestUpgradeToHTTP(t *testing.T) {
	for upgrade, want := range map[string]string{
		"h2c": "", "H2C": "", "websocket, h2c": "", "HTTP/2.0": "", "TLS/1.2,HTTP/1.1": "", "h2": "",
		"websocket": "websocket", "SPDY/3.1": "SPDY/3.1", "echo": "echo", "h2cat": "h2cat",
		"echo over HTTP/1.0": "",
	} {
		t.Run(upgrade, func(t *testing.T) {
			s := newStack(t, to(t, func(w http.ResponseWriter, r *http.Request) {
				setAll(w.Header(), "Saw-Upgrade: "+r.Header.Get("Upgrade")+"\nSaw-Connection: "+r.Header.Get("Connection")+
					"\nSaw-Settings: "+r.Header.Get("Http2-Settings"))
			}), limit.Options{})
			srv, _ := listen(t, s, false)
			upgrade, old := strings.CutSuffix(upgrade, " over HTTP/1.0")
			version := map[bool]string{true: "1.0", false: "1.1"}[old]
			resp, _ := raw(t, srv, "GET / HTTP/"+version+"\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: "+upgrade+"\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n")
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
// here must not be another one there. The backend gets a path alone, and no host that the
// client chose.
func TestTargets(t *testing.T) {
	const refused = ""
	for target, want := range map[string]string{
		"GET /public/../admin": refused, "GET /public/%2e%2e/admin": refused, "GET /public/%2E./admin": refused,
		"GET /public/..%2fadmin": refused, "GET /public/..%5cadmin": refused, "GET /public/..;x=1/admin": refused,
		"GET /admin/.": refused, "GET /%2e/admin": refused, "GET /..": refused, "GET http://a/public/../admin": refused,
		"GET /public/...": "/public/...", "GET /public/a..b": "/public/a..b", "GET /.well-known/x": "/.well-known/x",
		"GET /public/..a": "/public/..a", "GET /public//x": "/public//x", "GET //a/x": "//a/x",
		"GET /public/%252e%252e/admin": "/public/%252e%252e/admin", "GET /a?x=/../": "/a?x=/../",

		"GET http:http://a/public/../admin": refused, "GET http:http://a/x": refused, "GET x:public": refused,
		"GET x:%2e%2e/admin": refused, "GET mailto:a@b/../x": refused, "GET *": refused,
		"CONNECT a:443": refused, "CONNECT /a": refused, "CONNECT http://a/": refused,
		"GET http://u:p@a/%70%2Fq?x": "/%70%2Fq?x", "GET http://a": "/", "GET http://a?x": "/?x", "GET x:/y": "/y",
		"GET /strip/a%2Fb": "/a%2Fb", "GET /strip/": "/", "GET /strip/%2Fa": "/%2Fa",
	} {
		t.Run(target, func(t *testing.T) {
			arrived := ""
			proxy := to(t, func(_ http.ResponseWriter, r *http.Request) { arrived = r.RequestURI })
			setURL := proxy.Rewrite
			proxy.Rewrite = func(p *httputil.ProxyRequest) {
				if u := p.Out.URL; u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(u.Path, "/") || !strings.HasPrefix(u.RequestURI(), "/") {
					t.Errorf("Rewrite gets %#v, want a path and a query", u)
				}
				setURL(p)
			}
			var h http.Handler = newStack(t, proxy, limit.Options{})
			if strings.HasPrefix(target, "GET /strip/") {
				h = http.StripPrefix("/strip/", h)
			}
			srv, _ := listen(t, h, false)
			resp, body := raw(t, srv, target+" HTTP/1.1\r\nHost: x\r\n\r\n")
			status := 200
			if want == refused {
				status = 400
			}
			if resp.StatusCode != status || arrived != want || want == refused && !strings.HasPrefix(body, `{"code":"invalid_request",`) {
				t.Errorf("%d %s, the backend gets %q; want %d, %q", resp.StatusCode, body, arrived, status, want)
			}
			wantMiddlewares(t, resp.Header)
		})
	}
}
