package gateway_test

import (
	"net/http"
	"net/http/httputil"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
)

// New leaves the proxy of the service as it is.
func TestNewCopies(t *testing.T) {
	proxy := to(t, func(http.ResponseWriter, *http.Request) {})
	newGateway(proxy, nil)
	if proxy.Transport != nil || proxy.ModifyResponse != nil || proxy.ErrorHandler != nil {
		t.Errorf("New has changed its argument: %+v", proxy)
	}
}

// The tag of a compressed response would not fit what the gateway made of it.
func TestCompressionIsThatOfTheClient(t *testing.T) {
	for _, accept := range []string{"", "gzip"} {
		srv, client := listen(t, newGateway(to(t, func(_ http.ResponseWriter, r *http.Request) {
			if got := r.Header.Get("Accept-Encoding"); got != accept {
				t.Errorf("Accept-Encoding: %q arrives, the client sends %q", got, accept)
			}
		}), nil), false)
		var fields []string
		if accept != "" {
			fields = []string{"Accept-Encoding", accept}
		}
		send(t, client, "GET", srv.URL, nil, fields...)
	}
}

// What a client writes into X-Forwarded-For does not reach the backend, unless a trusted
// proxy has added to it.
func TestForwardedFor(t *testing.T) {
	got := make(chan []string, 1)
	backend := to(t, func(_ http.ResponseWriter, r *http.Request) { got <- r.Header["X-Forwarded-For"] })
	source := must(clientip.FromXForwardedFor([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}))
	behind := *backend
	behind.Rewrite = func(p *httputil.ProxyRequest) {
		backend.Rewrite(p)
		p.Out.Header.Set("X-Forwarded-For", source.Addr(p.In).String())
	}
	for _, tt := range []struct {
		name  string
		proxy *httputil.ReverseProxy
		want  string
	}{
		{"reached directly", backend, "127.0.0.1"},
		{"behind a proxy", &behind, "203.0.113.9"},
	} {
		srv, client := listen(t, newGateway(tt.proxy, nil), false)
		send(t, client, "GET", srv.URL, nil, "X-Forwarded-For", "8.8.8.8, 203.0.113.9")
		if lines := <-got; len(lines) != 1 || lines[0] != tt.want {
			t.Errorf("%s: X-Forwarded-For %q, want %s", tt.name, lines, tt.want)
		}
	}
}

// Without middleware.RequestID, the ID that the client sends reaches the backend.
func TestRequestIDOfTheClient(t *testing.T) {
	srv, client := listen(t, newGateway(to(t, func(_ http.ResponseWriter, r *http.Request) {
		if got := r.Header["X-Request-Id"]; len(got) != 1 || got[0] != "a" {
			t.Errorf("X-Request-Id: %q, want a", got)
		}
	}), nil), false)
	send(t, client, "GET", srv.URL, nil, "X-Request-Id", "a")
}

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
			resp, _ := raw(srv, "GET / HTTP/"+version+"\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: "+upgrade+"\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n")
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
			resp, body := raw(srv, target+" HTTP/1.1\r\nHost: x\r\n\r\n")
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

func TestFields(t *testing.T) {
	tests := []struct {
		name, set, sent, want string // fields of middlewares, of the backend, and those that the client gets
	}{
		{"both limit rates",
			"X-RateLimit-Limit: 60\nX-RateLimit-Remaining: 59\nX-RateLimit-Reset: 1",
			"X-RateLimit-Limit: 5\nX-RateLimit-Used: 2\nX-RateLimit-Resource: core\nRateLimit: \"m\";r=3;t=4\nRateLimit-Policy: \"m\";q=5\nRateLimit-Limit: 5\nX-Rate-Limit-Limit: 5",
			"X-Ratelimit-Limit: 60\nX-Ratelimit-Remaining: 59\nX-Ratelimit-Reset: 1"},
		{"only the backend limits rates",
			"X-Request-Id: a", "X-RateLimit-Limit: 5\nRateLimit: \"m\";r=3;t=4",
			"Ratelimit: \"m\";r=3;t=4\nX-Ratelimit-Limit: 5\nX-Request-Id: a"},
		{"request ID", "X-Request-Id: a", "X-Request-Id: b", "X-Request-Id: a"},
		{"request ID of the backend alone", "", "X-Request-Id: b", "X-Request-Id: b"},
		{"caching", "Cache-Control: no-store", "Cache-Control: public, max-age=60\nExpires: 0", "Cache-Control: public, max-age=60\nExpires: 0"},
		{"caching, which the backend leaves open", "Cache-Control: no-store", "Etag: \"1\"", "Cache-Control: no-store\nEtag: \"1\""},
		{"several lines replace one", "Cache-Control: no-store", "Cache-Control: public\nCache-Control: max-age=60", "Cache-Control: public\nCache-Control: max-age=60"},
		{"security",
			"X-Content-Type-Options: nosniff\nContent-Security-Policy: default-src 'none'\nStrict-Transport-Security: max-age=31536000",
			"X-Content-Type-Options: nosniff\nContent-Security-Policy: default-src 'self'\nStrict-Transport-Security: max-age=0",
			"Content-Security-Policy: default-src 'self'\nStrict-Transport-Security: max-age=31536000\nX-Content-Type-Options: nosniff"},
		{"deprecation",
			"Deprecation: @1764892800", "Deprecation: @1\nSunset: Fri, 05 Dec 2025 00:00:00 GMT", "Deprecation: @1764892800"},
		{"deprecation of the backend alone", "", "Deprecation: @1\nSunset: Fri, 05 Dec 2025 00:00:00 GMT", "Deprecation: @1\nSunset: Fri, 05 Dec 2025 00:00:00 GMT"},
		{"links", "Link: </v2>; rel=\"successor-version\"", "Link: </v1?page=2>; rel=\"next\"",
			"Link: </v2>; rel=\"successor-version\"\nLink: </v1?page=2>; rel=\"next\""},
		{"the same link", "Link: </v2>; rel=\"successor-version\"", "Link: </v2>; rel=\"successor-version\"", "Link: </v2>; rel=\"successor-version\""},
		{"Vary", "Vary: Origin", "Vary: Origin\nVary: Accept", "Vary: Origin\nVary: Accept"},
		{"cookies", "Set-Cookie: a=1", "Set-Cookie: b=2\nSet-Cookie: c=3", "Set-Cookie: a=1\nSet-Cookie: b=2\nSet-Cookie: c=3"},
		{"cross-origin requests",
			"Access-Control-Allow-Origin: https://example.com", "Access-Control-Allow-Origin: *\nAccess-Control-Expose-Headers: X-Total",
			"Access-Control-Allow-Origin: https://example.com"},
		{"server", "Server: pets", "Server: gunicorn", "Server: pets"},
		{"server of the backend alone", "", "Server: gunicorn", "Server: gunicorn"},
		{"another port of the backend", "", "Alt-Svc: h3=\":8443\"", ""},
		{"another port of the gateway", "Alt-Svc: h3=\":443\"", "Alt-Svc: h3=\":8443\"", "Alt-Svc: h3=\":443\""},
		{"a retry", "", "Retry-After: 7", "Retry-After: 7"},
		{"a date", "", "Date: Sun, 22 Nov 2026 12:00:00 GMT", "Date: Sun, 22 Nov 2026 12:00:00 GMT"},
		{"hop by hop", "", "Connection: X-Hop\nX-Hop: 1\nKeep-Alive: timeout=5\nProxy-Authenticate: Basic\nUpgrade: h2c", ""},
	}
	for protocol, http2 := range protocols {
		for _, tt := range tests {
			t.Run(protocol+"/"+tt.name, func(t *testing.T) {
				proxy := to(t, func(w http.ResponseWriter, _ *http.Request) { setAll(w.Header(), tt.sent) })
				proxy.ModifyResponse = func(*http.Response) error { return nil }
				backend := newGateway(proxy, nil)
				srv, client := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					setAll(w.Header(), tt.set)
					backend.ServeHTTP(w, r)
				}), http2)
				resp, _ := send(t, client, "GET", srv.URL, nil)
				resp.Header.Del("Content-Length")
				if !strings.Contains(tt.sent, "Date: ") {
					if dates := resp.Header["Date"]; len(dates) != 1 {
						t.Errorf("Date: %q, want one", dates)
					}
					resp.Header.Del("Date")
				}
				if diff := cmp.Diff(tt.want, text(resp.Header)); diff != "" {
					t.Errorf("the client gets other fields (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// text returns a header with its names in order.
func text(h http.Header) string {
	var lines []string
	for name, values := range h {
		for _, v := range values {
			lines = append(lines, name+": "+v)
		}
	}
	slices.SortStableFunc(lines, func(a, b string) int {
		a, _, _ = strings.Cut(a, ":")
		b, _, _ = strings.Cut(b, ":")
		return strings.Compare(a, b)
	})
	return strings.Join(lines, "\n")
}

// No field of a middleware is sent twice, nor lost, whatever the backend sends.
func TestWholeStack(t *testing.T) {
	for protocol, http2 := range protocols {
		t.Run(protocol, func(t *testing.T) {
			ids := make(chan []string, 1)
			s := newStack(t, to(t, func(w http.ResponseWriter, r *http.Request) {
				ids <- r.Header["X-Request-Id"]
				setAll(w.Header(), "X-Request-Id: b\nX-RateLimit-Limit: 5\nX-RateLimit-Remaining: 1\nX-RateLimit-Reset: 2\nRetry-After: 9\n"+
					"Cache-Control: max-age=60\nX-Content-Type-Options: nosniff\nContent-Security-Policy: sandbox\nReferrer-Policy: origin\n"+
					"Deprecation: @1\nSunset: Fri, 05 Dec 2025 00:00:00 GMT\nLink: </v1?page=2>; rel=\"next\"")
				w.WriteHeader(http.StatusTooManyRequests)
			}), limit.Options{ChargeIf: limit.NotServerError, Context: true})
			srv, client := listen(t, s, http2)
			fields := []string{"X-Request-Id", "a"}
			if !http2 {
				fields = append(fields, "Connection", "X-Request-Id") // that proxies should not pass it on
			}
			resp, _ := send(t, client, "GET", srv.URL, nil, fields...)
			if got := <-ids; len(got) != 1 || got[0] != "a" {
				t.Errorf("the backend gets the request IDs %q, want a", got)
			}
			if resp.StatusCode != http.StatusTooManyRequests {
				t.Errorf("status %d, want 429", resp.StatusCode)
			}
			for name, lines := range resp.Header {
				if len(lines) != 1 && name != "Link" {
					t.Errorf("%s: %q, want one value", name, lines)
				}
			}
			for name, want := range map[string]string{
				"X-Request-Id": "a", "X-RateLimit-Limit": "10", "X-RateLimit-Remaining": "9", "Retry-After": "9",
				"Cache-Control": "max-age=60", "Referrer-Policy": "origin", "Content-Security-Policy": "sandbox",
				"Deprecation": "@1764892800", "Sunset": "Sun, 05 Dec 2100 00:00:00 GMT",
			} {
				if got := resp.Header.Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			if got := strings.Join(resp.Header["Link"], ", "); got != `</v2>; rel="successor-version", </v1?page=2>; rel="next"` {
				t.Errorf("Link: %s, want the links of both", got)
			}
		})
	}
}
