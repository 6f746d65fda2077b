package api_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/contract"
)

const origin = "https://app.example"

// preflight sends what a browser asks before a call. Its answer is no response of
// the API, and so not checked as one.
func preflight(t *testing.T, s *service, target, from string) *http.Response {
	t.Helper()
	conn := s.Dial(t)
	defer conn.Close()
	_, err := io.WriteString(conn, "OPTIONS "+target+" HTTP/1.1\r\nHost: x\r\nOrigin: "+from+
		"\r\nAccess-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization,content-type,idempotency-key\r\n\r\n")
	must(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(t, err)
	return resp
}

func TestCORS(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *api.Config) { c.CORSOrigins = []string{origin} })

	t.Run("a preflight needs no key and counts for nobody", func(t *testing.T) {
		before := s.Do(t, none(contract.Request{Target: "/v1/pets"})).Int("X-RateLimit-Remaining")
		resp := preflight(t, s, "/v1/pets", origin)
		if resp.StatusCode != 204 || resp.Header.Get("Access-Control-Allow-Origin") != origin ||
			resp.Header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("the answer is %d %v, want 204 for the origin, without credentials", resp.StatusCode, resp.Header)
		}
		if got := strings.ToLower(resp.Header.Get("Access-Control-Allow-Headers")); !strings.Contains(got, "authorization") {
			t.Errorf("Access-Control-Allow-Headers is %q, want authorization by name", got)
		}
		if after := s.Do(t, none(contract.Request{Target: "/v1/pets"})).Int("X-RateLimit-Remaining"); after != before-1 {
			t.Errorf("the network has %d requests left after %d, want one less for the request without a key", after, before)
		}
	})
	t.Run("a preflight for a deprecated operation has its fields", func(t *testing.T) {
		for target, deprecated := range map[string]bool{"/v1/pets/1": true, "/v1/pet%73/1": true, "/v1/pets": false} {
			h := preflight(t, s, target, origin).Header
			if got := h.Get("Deprecation") != "" && h.Get("Sunset") != "" && h.Get("Link") != ""; got != deprecated {
				t.Errorf("%s: the answer is %v, want Deprecation, Sunset and Link: %t", target, h, deprecated)
			}
		}
	})
	t.Run("another origin is allowed nothing", func(t *testing.T) {
		for _, from := range []string{"https://evil.example", "https://app.example.evil.example", "http://app.example", "null"} {
			if got := preflight(t, s, "/v1/pets", from).Header.Get("Access-Control-Allow-Origin"); got != "" {
				t.Errorf("Access-Control-Allow-Origin is %q for %s, want none", got, from)
			}
		}
	})
	t.Run("responses can be read, errors too", func(t *testing.T) {
		for _, resp := range []*contract.Response{
			s.Get(t, "/v1/pets", "Origin: "+origin),
			s.Do(t, none(contract.Request{Target: "/v1/pets", Header: []string{"Origin: " + origin}})),
			s.Get(t, "/v1/pets/1", "Origin: "+origin),
		} {
			if got := resp.Header.Get("Access-Control-Allow-Origin"); got != origin {
				t.Errorf("%d: Access-Control-Allow-Origin is %q, want the origin", resp.StatusCode, got)
			}
			exposed := strings.ToLower(resp.Header.Get("Access-Control-Expose-Headers"))
			for _, name := range []string{"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "retry-after",
				"ratelimit", "ratelimit-policy", "deprecation", "sunset", "link", "location", "idempotent-replayed", "www-authenticate"} {
				if !strings.Contains(exposed, name) {
					t.Errorf("%d: %s is not exposed", resp.StatusCode, name)
				}
			}
			if !strings.Contains(strings.Join(resp.Header.Values("Vary"), ","), "Origin") {
				t.Errorf("%d: Vary is %q, want Origin in it", resp.StatusCode, resp.Header.Values("Vary"))
			}
		}
	})
	t.Run("OPTIONS without a question is one of the API", func(t *testing.T) {
		want(t, s.Do(t, none(contract.Request{Method: "OPTIONS", Target: "/v1/pets", Header: []string{"Origin: " + origin}})), 401, "missing_api_key")
	})
}

func TestCORSIsOffByDefault(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	if resp := preflight(t, s, "/v1/pets", origin); resp.StatusCode != 401 {
		t.Errorf("a preflight is answered with %d, want 401 like every OPTIONS without a key", resp.StatusCode)
	}
	for name := range s.Get(t, "/v1/pets", "Origin: "+origin).Header {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("there is %s", name)
		}
	}
}
