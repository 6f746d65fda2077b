package api_test

import (
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/contract"
)

// fewUncharged lets a caller have three uncharged requests a minute, and believes
// the client's address that a test sends.
func fewUncharged(t *testing.T) func(*api.Config) {
	client, err := clientip.FromXForwardedFor([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	if err != nil {
		t.Fatal(err)
	}
	return func(c *api.Config) {
		c.Client = client
		c.Uncharged = ratelimit.MustPlan("uncharged", ratelimit.Penalty{}, ratelimit.PerMinute(3))
		c.Anonymous = ratelimit.MustPlan("anonymous", ratelimit.Penalty{}, ratelimit.PerMinute(50))
	}
}

// A network can have only so many pages. That limits nothing else, and no other
// network.
func TestPagesAreLimited(t *testing.T) {
	t.Parallel()
	s := start(t, fewUncharged(t))
	for i, header := range []string{"Accept-Encoding: gzip", "If-None-Match: *", "Accept: */*"} {
		resp, _ := page(t, s, "GET", "/openapi.json", header)
		if got := resp.Header.Get("X-RateLimit-Limit") + " " + resp.Header.Get("X-RateLimit-Remaining"); resp.StatusCode >= 400 || got != "3 "+string(rune('2'-i)) {
			t.Errorf("page %d: %d with limit and remaining %q", i+1, resp.StatusCode, got)
		}
	}
	refused := s.Do(t, none(contract.Request{Target: "/openapi.json"}))
	want(t, refused, 429, "rate_limit_exceeded")
	if got := refused.Int("Retry-After"); got != 55 {
		t.Errorf("Retry-After is %d, want the 55 seconds to the end of the minute", got)
	}
	want(t, s.Get(t, "/openap%69.json"), 429, "rate_limit_exceeded") // a key makes no difference to a page
	if resp, _ := page(t, s, "GET", "/openapi.json", "X-Forwarded-For: 192.0.2.7"); resp.StatusCode != 200 {
		t.Errorf("another network gets %d, want 200", resp.StatusCode)
	}
	anonymous := s.Do(t, none(contract.Request{Target: "/v1/pets"}))
	want(t, anonymous, 401, "missing_api_key")
	if got := anonymous.Int("X-RateLimit-Remaining"); got != 49 {
		t.Errorf("%d anonymous requests are left after pages, want 49 of 50", got)
	}
	want(t, s.Get(t, "/v1/usage"), 200, "")
	want(t, s.Get(t, "/v1/pets"), 200, "")
	s.clock.advance(55 * time.Second)
	if resp, _ := page(t, s, "GET", "/openapi.json"); resp.StatusCode != 200 {
		t.Errorf("after Retry-After: %d, want 200", resp.StatusCode)
	}
}

// An owner can ask for its usage only so often, also during a ban. Other owners,
// pages and its own quota are not touched.
func TestUsageIsLimited(t *testing.T) {
	t.Parallel()
	for _, banned := range []bool{false, true} {
		s := start(t, fewUncharged(t))
		c := s.with(s.key(t, "curious", "enterprise", "100/day"))
		if banned {
			if err := s.limits.Ban(t.Context(), "owner:curious", time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		for _, target := range []string{"/v1/usage", "/v1/%75sage", "/v1/usage?x"} {
			resp := c.Get(t, target)
			want(t, resp, 200, "")
			if got := resp.Int("X-RateLimit-Limit"); got != 100 {
				t.Errorf("X-RateLimit-Limit is %d, want the 100 of the plan", got)
			}
		}
		refused := c.Get(t, "/v1/usage")
		want(t, refused, 429, "rate_limit_exceeded")
		if got := refused.Int("X-RateLimit-Limit"); got != 3 {
			t.Errorf("X-RateLimit-Limit is %d, want the 3 that refuse", got)
		}
		if resp, _ := page(t, s, "GET", "/openapi.json"); resp.StatusCode != 200 {
			t.Errorf("the document: %d, want 200", resp.StatusCode)
		}
		want(t, s.Get(t, "/v1/usage"), 200, "")
		if resp := c.Get(t, "/v1/pets"); !banned && resp.Int("X-RateLimit-Remaining") != 99 {
			t.Errorf("%d of 100 requests are left, want 99", resp.Int("X-RateLimit-Remaining"))
		}
	}
}

// A network can send only so many preflights, and they use up nothing else.
func TestPreflightsAreLimited(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *api.Config) {
		fewUncharged(t)(c)
		c.Origins = []string{origin}
	})
	for i := range 3 {
		resp := preflight(t, s, "/v1/pets", origin)
		if got := resp.Header.Get("X-RateLimit-Limit") + " " + resp.Header.Get("X-RateLimit-Remaining"); resp.StatusCode != 204 || got != "3 "+string(rune('2'-i)) {
			t.Errorf("preflight %d: %d with limit and remaining %q", i+1, resp.StatusCode, got)
		}
	}
	if resp := preflight(t, s, "/v1/pets", origin); resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "55" {
		t.Errorf("preflight 4: %d with Retry-After %q, want 429 with the 55 seconds to the end of the minute", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
	anonymous := s.Do(t, none(contract.Request{Target: "/v1/pets"}))
	if got := anonymous.Int("X-RateLimit-Remaining"); got != 49 {
		t.Errorf("%d anonymous requests are left after preflights, want 49 of 50", got)
	}
	if resp := s.Get(t, "/v1/pets", "Origin: "+origin); resp.StatusCode != 200 {
		t.Errorf("a call after preflights: %d, want 200", resp.StatusCode)
	}
}

// Pages are served while the limiter fails.
func TestPagesWithoutLimiter(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *api.Config) { c.Limiter = brokenLimiter{} })
	if resp, _ := page(t, s, "GET", "/openapi.json"); resp.StatusCode != http.StatusOK {
		t.Errorf("GET /openapi.json: %d, want 200", resp.StatusCode)
	}
}
