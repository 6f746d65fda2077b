package gateway_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/middleware/limit"
)

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
				backend := newGateway(t, proxy, nil)
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
