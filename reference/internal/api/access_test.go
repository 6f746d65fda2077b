package api_test

import (
	"bufio"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/contract"
)

// from is a header line that names the client's address.
func from(addr string) string { return "X-Forwarded-For: " + addr }

// startAccess starts a service that believes from, and whose networks have one request
// per minute.
func startAccess(t *testing.T, deny, allow config.AccessList, adjust func(*api.Config)) *service {
	t.Helper()
	return start(t, func(c *api.Config) {
		c.HTTP.TrustedProxies, c.Deny, c.Allow = networks("127.0.0.0/8"), deny, allow
		c.Anonymous = ratelimit.MustPlan("anonymous", ratelimit.DefaultPenalty(), ratelimit.PerMinute(1))
		c.Uncharged = ratelimit.MustPlan("uncharged", ratelimit.Penalty{}, ratelimit.PerMinute(1))
		if adjust != nil {
			adjust(c)
		}
	})
}

func networks(texts ...string) []netip.Prefix {
	var list []netip.Prefix
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

func TestDeniedNetworks(t *testing.T) {
	t.Parallel()
	var seen decisions
	s := startAccess(t, config.AccessList{Networks: networks("192.0.2.0/24", "192.0.2.7/32", "2001:db8:1::/48", "203.0.113.9/32", "64:ff9b::198.51.100.0/120")},
		config.AccessList{}, func(c *api.Config) { c.OnDecision, c.DraftHeaders = seen.add, true })
	for addr, denied := range map[string]bool{
		"192.0.1.255": false, "192.0.2.0": true, "192.0.2.7": true, "192.0.2.255": true, "192.0.3.0": false,
		"203.0.113.8": false, "203.0.113.9": true, "203.0.113.10": false,
		"::ffff:192.0.2.1": true, "64:ff9b::192.0.2.1": true, "64:ff9b::192.0.3.1": false,
		"64:ff9b::198.51.100.1": true, "198.51.100.1": false,
		"2001:db8:0:ffff::1": false, "2001:db8:1::": true, "2001:db8:1:ffff::1": true, "2001:db8:2::": false,
	} {
		resp := s.Get(t, "/v1/pets", from(addr))
		if got := resp.StatusCode == 403; got != denied {
			t.Errorf("%s: status %d, want denied %t", addr, resp.StatusCode, denied)
		}
	}
	seen.take()
	t.Run("whatever is asked for", func(t *testing.T) {
		for _, r := range []contract.Request{
			{Target: "/v1/pets"}, {Target: "/v1/usage"}, {Method: "HEAD", Target: "/v1/pets/1"}, {Target: "/v1/x"}, {Target: "/"},
			{Method: "DELETE", Target: "/v1/pets"}, {Target: "/openapi.json"}, {Target: "/v1/pets?" + strings.Repeat("x", 9000)},
			none(contract.Request{Target: "/v1/pets"}), {Target: "/v1/pets", Key: new("x")},
		} {
			r.Header = append(r.Header, from("192.0.2.1"))
			resp := s.Do(t, r)
			want(t, resp, 403, "access_denied")
			if got := resp.Header.Get("X-RateLimit-Limit") + " " + resp.Header.Get("X-RateLimit-Remaining"); got != "1 1" {
				t.Errorf("%s: limit and remaining are %q, want those of the anonymous plan, unused", r.Target, got)
			}
			if resp.Header.Get("RateLimit") == "" || resp.Header.Get("RateLimit-Policy") == "" {
				t.Errorf("%s: the refusal has the fields %v, want RateLimit and RateLimit-Policy too", r.Target, resp.Header)
			}
		}
	})
	if d := cmp.Diff([]string(nil), seen.take()); d != "" {
		t.Errorf("requests of denied networks were decided (-want +got):\n%s", d)
	}
}

// A stranger with a stolen key uses up nothing of its owner from a denied network. A
// denied owner is refused in every network. A client without a valid key is not taken
// for an owner.
func TestDeniedOwners(t *testing.T) {
	t.Parallel()
	s := startAccess(t, config.AccessList{Owners: []string{"mallory"}, Networks: networks("192.0.2.0/24")}, config.AccessList{}, nil)
	ada, mallory := s.with(s.key(t, "ada", "free")), s.with(s.key(t, "mallory", "enterprise", "5/minute"))
	for range 3 {
		want(t, ada.Get(t, "/v1/pets", from("192.0.2.1")), 403, "access_denied")
		for _, target := range []string{"/v1/pets", "/v1/usage", "/nothing"} {
			resp := mallory.Get(t, target)
			want(t, resp, 403, "access_denied")
			if got := resp.Header.Get("X-RateLimit-Limit") + " " + resp.Header.Get("X-RateLimit-Remaining"); got != "5 5" {
				t.Errorf("limit and remaining of a denied owner are %q, want those of its plan, unused", got)
			}
		}
	}
	if got := ada.Get(t, "/v1/pets").Int("X-RateLimit-Remaining"); got != 59 {
		t.Errorf("%d requests are left, want 59 of 60: requests from a denied network are not charged", got)
	}
	want(t, s.with(mallory.Key+"x").Get(t, "/v1/pets"), 401, "invalid_api_key")
}

// Nothing is refused to allowed callers and none of them is banned, but their usage is
// counted and shown.
func TestAllowedCallers(t *testing.T) {
	t.Parallel()
	var seen decisions
	s := startAccess(t, config.AccessList{Owners: []string{"mallory"}},
		config.AccessList{Owners: []string{"ada", "mallory"}, Networks: networks("198.51.100.0/24", "127.0.0.0/8")},
		func(c *api.Config) {
			c.OnDecision = seen.add
			c.CORSOrigins = []string{origin}
			withPlan(ratelimit.MustPlan("strict", ratelimit.Penalty{Strikes: 1, Ban: 60e9, Growth: 1, Max: 60e9, Forgive: 60e9}, ratelimit.PerMinute(2)))(c)
		})
	ada, bob := s.with(s.key(t, "ada", "strict")), s.with(s.key(t, "bob", "strict"))
	for _, caller := range []struct {
		name   string
		get    func(target string) *contract.Response
		status int
	}{
		{"an owner", func(target string) *contract.Response { return ada.Get(t, target, from("203.0.113.1")) }, 200},
		{"an owner in a network", func(target string) *contract.Response { return bob.Get(t, target, from("198.51.100.1")) }, 200},
		{"a network", func(target string) *contract.Response {
			return s.Do(t, none(contract.Request{Target: target, Header: []string{from("198.51.100.1")}}))
		}, 401},
	} {
		seen.take()
		var remaining []int64
		for range 6 {
			resp := caller.get("/v1/pets")
			if resp.StatusCode != caller.status {
				t.Errorf("%s: status %d %s, want %d", caller.name, resp.StatusCode, resp.Code(), caller.status)
			}
			remaining = append(remaining, resp.Int("X-RateLimit-Remaining"))
		}
		if last := remaining[len(remaining)-1]; remaining[0] == 6 || last != 0 {
			t.Errorf("%s: remaining is %d, want that it is counted", caller.name, remaining)
		}
		if calls := seen.take(); len(calls) != 6 || !strings.Contains(calls[5], " limited ") {
			t.Errorf("%s: OnDecision got %q, want six decisions, the last of them limited", caller.name, calls)
		}
	}
	for range 3 { // the quota of requests that are not charged is 1
		want(t, ada.Get(t, "/v1/usage", from("203.0.113.1")), 200, "")
	}
	for range 3 {
		if resp := preflight(t, s, "/v1/pets", origin); resp.StatusCode != 204 {
			t.Errorf("a preflight from an allowed network is answered with %d, want 204", resp.StatusCode)
		}
	}
	want(t, bob.Get(t, "/v1/pets", from("203.0.113.1")), 429, "rate_limit_exceeded")
	want(t, s.with(s.key(t, "mallory", "strict")).Get(t, "/v1/pets", from("198.51.100.1")), 403, "access_denied")
}

func TestListsInTheLog(t *testing.T) {
	t.Parallel()
	s := startAccess(t, config.AccessList{Networks: networks("192.0.2.0/24"), Owners: []string{"mallory"}},
		config.AccessList{Networks: networks("198.51.100.0/24"), Owners: []string{"ada"}}, nil)
	tests := []struct {
		owner, addr   string
		list, outcome any
	}{
		{"ada", "203.0.113.1", "allow", "allowed"},
		{"bob", "198.51.100.1", "allow", "allowed"},
		{"bob", "203.0.113.1", nil, "allowed"},
		{"bob", "192.0.2.1", "deny", "denied"},
		{"mallory", "203.0.113.1", "deny", "denied"},
	}
	var ids []string
	for _, test := range tests {
		resp := s.with(s.key(t, test.owner, "free")).Get(t, "/v1/pets", from(test.addr))
		ids = append(ids, resp.Header.Get("X-Request-Id"))
	}
	_, lines := s.logged(t)
	for i, test := range tests {
		if line := lines[ids[i]]; line["list"] != test.list || line["outcome"] != test.outcome {
			t.Errorf("%s from %s: the log has %v, want list %v and outcome %v", test.owner, test.addr, line, test.list, test.outcome)
		}
	}
}

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

// A page of a denied network reads why it was refused: its preflight is answered.
func TestPagesOfDeniedNetworks(t *testing.T) {
	t.Parallel()
	s := startAccess(t, config.AccessList{Networks: networks("127.0.0.0/8")}, config.AccessList{}, func(c *api.Config) {
		c.CORSOrigins = []string{origin}
	})
	for i, status := range []int{204, 429} { // limited as anywhere, to one per minute here
		if resp := preflight(t, s, "/v1/pets", origin); resp.StatusCode != status {
			t.Errorf("preflight %d is answered with %d, want %d", i+1, resp.StatusCode, status)
		}
	}
	resp := s.Get(t, "/v1/pets", "Origin: "+origin)
	want(t, resp, 403, "access_denied")
	if got := resp.Header.Get("Access-Control-Allow-Origin"); got != origin {
		t.Errorf("Access-Control-Allow-Origin of the refusal is %q, want %q", got, origin)
	}
}
