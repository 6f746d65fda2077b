package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/contract"
)

func TestMethods(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 1)
	allow := map[string]string{
		"/v1/pets":   "GET, HEAD, OPTIONS, POST",
		"/v1/pets/1": "GET, HEAD, OPTIONS",
		"/v1/usage":  "GET, HEAD, OPTIONS",
		"/docs":      "GET, HEAD, OPTIONS",

		"/.well-known/api-catalog": "GET, HEAD, OPTIONS",
	}
	for target, methods := range allow {
		for _, method := range []string{"PUT", "DELETE", "TRACE", "CONNECT", "POST", "QUERY", "get"} {
			if method == "POST" && target == "/v1/pets" {
				continue
			}
			resp := s.Do(t, contract.Request{Method: method, Target: target})
			want(t, resp, 405, "method_not_allowed")
			if got := resp.Header.Get("Allow"); got != methods {
				t.Errorf("%s %s: Allow is %q, want %q", method, target, got, methods)
			}
		}
		resp := s.Do(t, contract.Request{Method: "OPTIONS", Target: target})
		want(t, resp, 204, "")
		if got := resp.Header.Get("Allow"); got != methods {
			t.Errorf("OPTIONS %s: Allow is %q, want %q", target, got, methods)
		}
	}
	want(t, s.Do(t, contract.Request{Method: "OPTIONS", Target: "*"}), 204, "")
	want(t, s.Do(t, none(contract.Request{Method: "OPTIONS", Target: "*"})), 204, "")
	want(t, s.Do(t, contract.Request{Method: "OPTIONS", Target: "/v1/nothing"}), 404, "not_found")
}

func TestPathsAreExact(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 1)
	for _, target := range []string{
		"/v1", "/v1/", "/v1/pets/", "/V1/pets", "/v1/Pets", "/v1//pets", "/v1/./pets", "/v1/x/../pets", "/v1/pets/../pets",
		"/v1/pets/1/", "/v1/pets/1/x", "/v1/pets//1", "/v1%2Fpets", "/v1/pets%00", "/v1/pets%2F1", "/v1/pets;x=y", "/v1/usage/", "/v1/.",
	} {
		want(t, s.Get(t, target), 404, "not_found")
		if target != "/V1/pets" {
			want(t, s.Do(t, none(contract.Request{Target: target})), 401, "missing_api_key")
		}
	}
	for _, target := range []string{"/", "//", "//v1/pets", "/./v1/pets", "/x/../v1/pets", "/favicon.ico", "/v2/pets", "/openapi.json/", "/%76"} {
		want(t, s.Get(t, target), 404, "not_found")
		want(t, s.Do(t, none(contract.Request{Target: target})), 404, "not_found") // there is no API outside of /v1
	}
	want(t, s.Get(t, "/%761/p%65ts"), 200, "") // the same path (RFC 3986 section 2.3)
	want(t, s.Do(t, none(contract.Request{Target: "/%761/p%65ts"})), 401, "missing_api_key")
	want(t, s.Do(t, none(contract.Request{Target: "/v1%2Fpets"})), 401, "missing_api_key")
	want(t, s.Get(t, "http://elsewhere.example/v1/pets"), 200, "")
}

// spellings returns paths that are the same as p (RFC 3986 section 6.2.2.2): one
// for each character, which is percent-encoded, and one with all of them.
func spellings(p string) []string {
	var same []string
	all := ""
	for i, c := range []byte(p) {
		if c == '/' {
			all += "/"
			continue
		}
		escaped := fmt.Sprintf("%%%02x", c)
		all += escaped
		same = append(same, p[:i]+escaped+p[i+1:])
	}
	return append(same, all)
}

// A path may be percent-encoded in many ways. What is served, what is charged and
// what the header fields say depends on none of them.
func TestSpellingOfAPathDoesNotMatter(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 1)
	c := s.with(s.key(t, "speller", "enterprise", "10000/day"))
	remaining := int64(10000)
	for _, path := range []string{"/v1/pets", "/v1/pets/1", "/v1/usage", "/v1/nothing", "/openapi.json", "/nothing"} {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			if path == "/openapi.json" && method != "POST" {
				continue // is a page, and not charged
			}
			charge := int64(1)
			if path == "/v1/usage" && method != "POST" {
				charge = 0
			}
			var plain *contract.Response
			for _, target := range append([]string{path}, spellings(path)...) {
				resp := c.Do(t, contract.Request{Method: method, Target: target})
				remaining -= charge
				if plain == nil {
					plain = resp
				}
				if got := resp.Int("X-RateLimit-Remaining"); resp.StatusCode != plain.StatusCode || resp.Code() != plain.Code() || got != remaining {
					t.Errorf("%s %s: %d %q with %d remaining, want what %s has: %d %q with %d",
						method, target, resp.StatusCode, resp.Code(), got, path, plain.StatusCode, plain.Code(), remaining)
					remaining = got
				}
			}
		}
	}
}

// Responses share the values of header fields that are always the same. A handler around
// the API that adds to each field changes neither other fields nor other responses.
func TestResponsesDoNotShareWhatIsAddedToThem(t *testing.T) {
	s := start(t, nil)
	s.pets(t, 1)
	limited := s.key(t, "limited", "enterprise", "1/day")
	for _, tt := range []struct{ method, target, key string }{
		{"GET", "/v1/pets", "none"}, {"GET", "/v1/pets", s.Key}, {"GET", "/v1/pets", limited}, {"GET", "/v1/pets/1", s.Key},
		{"PUT", "/v1/pets", s.Key}, {"OPTIONS", "/v1/pets", s.Key}, {"GET", "/v1/nothing", s.Key}, {"GET", "/docs", "none"},
	} {
		serve := func() (h, steady http.Header) {
			r := httptest.NewRequest(tt.method, tt.target, nil)
			r.Header.Set("Authorization", "Bearer "+tt.key)
			w := httptest.NewRecorder()
			s.handler.ServeHTTP(w, r)
			steady = w.Header().Clone()
			for _, name := range []string{"X-Request-Id", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Retry-After"} {
				delete(steady, name)
			}
			return w.Header(), steady
		}
		serve() // uses up the one request of the day
		h, before := serve()
		all := h.Clone()
		for name := range h {
			h[name] = append(h[name], "added")
		}
		for name, values := range all {
			if d := cmp.Diff(append(values, "added"), h[name]); d != "" {
				t.Errorf("%s %s: adding to other fields changed %s (-want +got):\n%s", tt.method, tt.target, name, d)
			}
		}
		if _, after := serve(); !cmp.Equal(before, after) {
			t.Errorf("%s %s: the next response is different (-want +got):\n%s", tt.method, tt.target, cmp.Diff(before, after))
		}
	}
}

// Fields, parameters and bodies that mean nothing here change nothing.
func TestWhatIsIgnored(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 1)
	plain := s.Get(t, "/v1/pets/1")
	for _, line := range []string{
		"Range: bytes=0-1", "If-Range: \"x\"\r\nRange: bytes=0-1", "Accept: text/html", "Accept: application/json;q=0", "Accept-Encoding: gzip",
		"X-HTTP-Method-Override: DELETE", "X-Original-URL: /v1/usage", "X-Rewrite-URL: /v1/usage", "X-Forwarded-Proto: https",
		"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk", "Connection: X-RateLimit-Limit, Authorization",
		"Content-Type: text/plain\r\nContent-Length: 0", "Cookie: a=b", "Trailer: Authorization",
	} {
		resp := s.Get(t, "/v1/pets/1", line)
		if resp.StatusCode != 200 || string(resp.Data) != string(plain.Data) || resp.Header.Get("Content-Encoding") != "" {
			t.Errorf("with %.80q: %d %q, want 200 and the pet", line, resp.StatusCode, resp.Data)
		}
	}
	for _, query := range []string{"?limit=x", "?%zz", "?a;b", "?%00", "?status[]=sold&status=x", "?"} {
		want(t, s.Get(t, "/v1/pets/1"+query), 200, "")
		want(t, s.Get(t, "/v1/usage"+query), 200, "")
		want(t, s.Post(t, "/v1/pets"+query, duke), 201, "")
	}
	want(t, s.Do(t, contract.Request{Target: "/v1/pets", Body: "not JSON", Header: []string{"Content-Type: text/plain"}}), 200, "")
}
