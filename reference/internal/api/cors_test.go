package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/contract"
)

const origin = "https://app.example"

// preflight sends what a browser asks before a call.
func preflight(t *testing.T, s *service, target, from string) *http.Response {
	t.Helper()
	resp, _ := unchecked(t, s, "OPTIONS", target, "Origin: "+from,
		"Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization,content-type,idempotency-key")
	return resp
}

// A preflight needs no key and is charged to nobody. On the path of a deprecated operation it
// has the fields of the deprecation.
func TestPreflights(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *api.Config) { c.CORSOrigins = []string{origin} })
	left := func() int64 { return s.Do(t, none(contract.Request{Target: "/v1/pets"})).Int("X-RateLimit-Remaining") }
	before := left()
	for target, deprecated := range map[string]bool{"/v1/pets/1": true, "/v1/pet%73/1": true, "/v1/pets": false} {
		resp := preflight(t, s, target, origin)
		h := resp.Header
		if resp.StatusCode != 204 || h.Get("Access-Control-Allow-Origin") != origin || h.Get("Access-Control-Allow-Credentials") != "" ||
			!strings.Contains(strings.ToLower(h.Get("Access-Control-Allow-Headers")), "authorization") {
			t.Errorf("%s: the answer is %d %v, want 204 for the origin and authorization, without credentials", target, resp.StatusCode, h)
		}
		if got := h.Get("Deprecation") != "" && h.Get("Sunset") != "" && h.Get("Link") != ""; got != deprecated {
			t.Errorf("%s: the answer is %v, want Deprecation, Sunset and Link: %t", target, h, deprecated)
		}
	}
	if after := left(); after != before-1 {
		t.Errorf("the network has %d requests left after %d, want one less for the request without a key", after, before)
	}
	for _, from := range []string{"https://evil.example", "https://app.example.evil.example", "http://app.example", "null"} {
		if got := preflight(t, s, "/v1/pets", from).Header.Get("Access-Control-Allow-Origin"); got != "" {
			t.Errorf("Access-Control-Allow-Origin is %q for %s, want none", got, from)
		}
	}
	options := contract.Request{Method: "OPTIONS", Target: "/v1/pets", Header: []string{"Origin: " + origin}}
	want(t, s.Do(t, none(options)), 401, "missing_api_key") // is no preflight
}

// A page of an allowed origin can read responses, errors too.
func TestCORS(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *api.Config) { c.CORSOrigins = []string{origin} })
	for _, resp := range []*contract.Response{
		s.Get(t, "/v1/pets", "Origin: "+origin),
		s.Do(t, none(contract.Request{Target: "/v1/pets", Header: []string{"Origin: " + origin}})),
		s.Get(t, "/v1/pets/1", "Origin: "+origin),
	} {
		if got := resp.Header.Get("Access-Control-Allow-Origin"); got != origin || !strings.Contains(strings.Join(resp.Header.Values("Vary"), ","), "Origin") {
			t.Errorf("%d: Access-Control-Allow-Origin is %q with Vary %q, want the origin", resp.StatusCode, got, resp.Header.Values("Vary"))
		}
		exposed := strings.ToLower(resp.Header.Get("Access-Control-Expose-Headers"))
		for _, name := range []string{"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "retry-after",
			"ratelimit", "ratelimit-policy", "deprecation", "sunset", "link", "location", "idempotent-replayed", "www-authenticate"} {
			if !strings.Contains(exposed, name) {
				t.Errorf("%d: %s is not exposed", resp.StatusCode, name)
			}
		}
	}
	off := start(t, nil)
	if resp := preflight(t, off, "/v1/pets", origin); resp.StatusCode != 401 || resp.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("without origins a preflight is answered with %d %v, want 401 like every OPTIONS without a key", resp.StatusCode, resp.Header)
	}
}
