package api_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/contract"
)

// fields are the three header fields of a limit; reset counts from the minute in
// which the clock of the tests starts.
type fields struct{ Limit, Remaining, Reset int64 }

func fieldsOf(resp *contract.Response) fields {
	minute := time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC).Unix()
	return fields{resp.Int("X-RateLimit-Limit"), resp.Int("X-RateLimit-Remaining"), resp.Int("X-RateLimit-Reset") - minute}
}

func TestQuota(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.with(s.key(t, "small", "enterprise", "3/minute", "5/day"))
	get := func(status int, want fields) *contract.Response {
		t.Helper()
		resp := c.Get(t, "/v1/pets")
		if resp.StatusCode != status {
			t.Errorf("status %d, want %d", resp.StatusCode, status)
		}
		if d := cmp.Diff(want, fieldsOf(resp)); d != "" {
			t.Errorf("the fields (-want +got):\n%s", d)
		}
		return resp
	}
	const midnight = 12 * 60 * 60
	get(200, fields{3, 2, 60})
	get(200, fields{3, 1, 60})
	get(200, fields{3, 0, 60})
	resp := get(429, fields{3, 0, 60})
	if got := resp.Int("Retry-After"); got != 55 {
		t.Errorf("Retry-After is %d, want the 55 seconds to the end of the minute", got)
	}
	s.clock.advance(55 * time.Second)
	get(200, fields{5, 1, midnight})
	get(200, fields{5, 0, midnight})
	resp = get(429, fields{5, 0, midnight}) // the minute is not used up, the day is
	s.clock.advance(time.Duration(resp.Int("Retry-After")) * time.Second)
	get(200, fields{3, 2, midnight + 60})
}

// Callers without a valid key are counted by their network, and never against
// anybody's key.
func TestAnonymousCallers(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *api.Config) {
		c.Anonymous = ratelimit.MustPlan("anonymous", ratelimit.DefaultPenalty(), ratelimit.PerMinute(5))
	})
	key := s.key(t, "small", "enterprise", "2/minute")
	wrong := s.format.Generate().Reveal()
	for i, target := range []string{"/v1/pets", "/v1/pets/1", "/v1/usage", "/v1/nothing", "/nothing"} {
		r := contract.Request{Target: target, Key: []*string{new(string), &wrong}[i%2]}
		if i == 3 {
			r.Header = []string{"Authorization: Bearer " + key} // the second one
		}
		resp := s.Do(t, r)
		if d := cmp.Diff(fields{5, int64(4 - i), 60}, fieldsOf(resp)); d != "" {
			t.Errorf("%s: the fields (-want +got):\n%s", target, d)
		}
	}
	want(t, s.Do(t, none(contract.Request{Target: "/v1/pets"})), 429, "rate_limit_exceeded")
	s.clock.advance(3 * time.Second)
	for range 10 {
		want(t, s.Do(t, none(contract.Request{Target: "/v1/usage"})), 429, "rate_limit_exceeded")
	}
	want(t, s.Do(t, contract.Request{Target: "/v1/pets", Key: &wrong}), 429, "client_banned")

	if resp, _ := page(t, s, "GET", "/openapi.json"); resp.StatusCode != 200 {
		t.Errorf("the document is answered with %d for a banned network, want 200", resp.StatusCode)
	}
	resp := s.with(key).Get(t, "/v1/pets")
	want(t, resp, 200, "") // a valid key from the same network
	if d := cmp.Diff(fields{2, 1, 60}, fieldsOf(resp)); d != "" {
		t.Errorf("the fields of a valid key (-want +got):\n%s", d)
	}
	resp = s.Do(t, none(contract.Request{Target: "/v1/pets", Header: []string{"X-Forwarded-For: 192.0.2.1", "Forwarded: for=192.0.2.1"}}))
	want(t, resp, 429, "client_banned") // nobody but a trusted proxy says who a client is
}

func TestDraftHeaders(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *api.Config) { c.DraftHeaders = true })
	c := s.with(s.key(t, "modern", "free"))
	for _, target := range []string{"/v1/pets", "/v1/usage"} {
		resp := c.Get(t, target)
		if got := resp.Header.Get("RateLimit-Policy"); got != `"minute";q=60;w=60, "day";q=1000;w=86400` {
			t.Errorf("%s: RateLimit-Policy is %s", target, got)
		}
		if got := resp.Header.Get("RateLimit"); got != `"minute";r=59;t=55, "day";r=999;t=43195` {
			t.Errorf("%s: RateLimit is %s", target, got)
		}
	}
	off := start(t, nil).Get(t, "/v1/pets")
	for name := range off.Header {
		if strings.HasPrefix(strings.ToLower(name), "ratelimit") {
			t.Errorf("there is %s, which is off by default", name)
		}
	}
}

// fewUncharged lets a caller have three uncharged requests a minute, and believes
// the client's address that a test sends.
func fewUncharged(c *api.Config) {
	c.HTTP.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	c.Uncharged = ratelimit.MustPlan("uncharged", ratelimit.Penalty{}, ratelimit.PerMinute(3))
	c.Anonymous = ratelimit.MustPlan("anonymous", ratelimit.Penalty{}, ratelimit.PerMinute(50))
}

// A network can have only so many pages. That limits nothing else, and no other
// network.
func TestPagesAreLimited(t *testing.T) {
	t.Parallel()
	s := start(t, fewUncharged)
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
		s := start(t, fewUncharged)
		c := s.with(s.key(t, "curious", "enterprise", "100/day"))
		if banned {
			must(t, s.limits.Ban(t.Context(), "owner:curious", time.Hour, ""))
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
		fewUncharged(c)
		c.CORSOrigins = []string{origin}
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

// plainly returns the status, the fields and the body of a response that is not checked:
// a contract expects header fields that plans without quotas do not have.
func plainly(t *testing.T, s *service, key, target string) (got string, body []byte) {
	t.Helper()
	resp, body := unchecked(t, s, "GET", target, "Authorization: Bearer "+key)
	got = fmt.Sprint(resp.StatusCode)
	for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After"} {
		if v := resp.Header.Get(name); v != "" {
			got += " " + v
		}
	}
	return got, body
}

// withPlan makes every key one of this plan.
func withPlan(plan *ratelimit.Plan) func(*api.Config) {
	return func(c *api.Config) {
		c.Plan = func(string, []string) (*ratelimit.Plan, error) { return plan, nil }
	}
}

// An owner of a suspended plan can still ask why.
func TestSuspendedPlan(t *testing.T) {
	t.Parallel()
	var seen decisions
	s := start(t, func(c *api.Config) {
		withPlan(ratelimit.SuspendedPlan("unpaid"))(c)
		c.OnDecision = seen.add
	})
	key := s.key(t, "debtor", "any")
	for range 15 { // more than the strikes of a ban
		want(t, s.with(key).Get(t, "/v1/pets"), 403, "plan_suspended")
	}
	if got, body := plainly(t, s, key, "/v1/pets"); got != "403 0 0" {
		t.Errorf("got %s %s, want 403 with a limit of 0 and nothing remaining", got, body)
	}
	got, body := plainly(t, s, key, "/v1/usage")
	if want := `{"plan":"unpaid","quotas":[],"suspended":true}`; got != "200 0 0" || strings.TrimSpace(string(body)) != want {
		t.Errorf("getUsage: got %s %s, want 200 0 0 %s", got, body, want)
	}
	if bans, err := s.limits.Bans(t.Context()); err != nil || len(bans) > 0 {
		t.Errorf("the bans are %v (%v), want none", bans, err)
	}
	for _, d := range seen.take() {
		if !strings.Contains(d, "suspended") {
			t.Errorf("reported %q, want suspended", d)
		}
	}
}

// Requests of an unlimited plan have no fields, but the limits of a key hold.
func TestUnlimitedPlan(t *testing.T) {
	t.Parallel()
	s := start(t, withPlan(ratelimit.UnlimitedPlan("internal")))
	key := s.key(t, "monitor", "any")
	for range 3 {
		if got, body := plainly(t, s, key, "/v1/pets"); got != "200" {
			t.Errorf("got %s %s, want 200 without fields", got, body)
		}
	}
	got, body := plainly(t, s, key, "/v1/usage")
	if want := `{"plan":"internal","quotas":[]}`; got != "200" || strings.TrimSpace(string(body)) != want {
		t.Errorf("getUsage: got %s %s, want 200 %s", got, body, want)
	}

	limited, _ := limitedKeys(t, s, "2/minute")
	var statuses []string
	for range 3 {
		statuses = append(statuses, quota(limited.Get(t, "/v1/pets")))
	}
	if diff := cmp.Diff([]string{"200 1/2", "200 0/2", "429 0/2"}, statuses); diff != "" {
		t.Errorf("a key with 2 requests a minute (-want +got):\n%s", diff)
	}
	var usage struct {
		Plan              string
		Quotas, KeyQuotas []struct{ Remaining int64 }
	}
	must(t, json.Unmarshal(limited.Get(t, "/v1/usage").Data, &usage))
	if usage.Plan != "internal" || len(usage.Quotas) != 0 || len(usage.KeyQuotas) != 1 || usage.KeyQuotas[0].Remaining != 0 {
		t.Errorf("getUsage of the key says %+v, want the plan internal, no quotas, and nothing left of the key's", usage)
	}
}

func TestBan(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.with(s.key(t, "pushy", "enterprise", "2/minute"))
	c.Get(t, "/v1/pets")
	c.Get(t, "/v1/pets")
	want(t, c.Get(t, "/v1/pets"), 429, "rate_limit_exceeded")
	s.clock.advance(3 * time.Second) // over the grace
	for range 10 {
		want(t, c.Get(t, "/v1/pets"), 429, "rate_limit_exceeded")
	}
	if got := decode[wireUsage](t, c.Get(t, "/v1/usage")); got.StrikesLeft == nil || *got.StrikesLeft != 0 {
		t.Errorf("GET /v1/usage after ten strikes says %+v, want that none is left", got)
	}
	resp := c.Get(t, "/v1/pets")
	want(t, resp, 429, "api_key_banned")
	if got := resp.Int("Retry-After"); got != 60 {
		t.Errorf("Retry-After is %d, want the ban of 60 seconds", got)
	}
	s.clock.advance(59 * time.Second) // the minute is over, the ban is not
	want(t, c.Get(t, "/v1/pets"), 429, "api_key_banned")
	want(t, s.with(s.key(t, "pushy", "enterprise", "2/minute")).Get(t, "/v1/pets"), 429, "api_key_banned") // another key of the owner
	want(t, c.Get(t, "/openapi.yaml"), 429, "api_key_banned")

	usage := c.Get(t, "/v1/usage")
	want(t, usage, 200, "")
	if got, ends := decode[wireUsage](t, usage), s.clock.Now().Unix()+1; got.Ban == nil || got.Ban.Ends != ends {
		t.Errorf("GET /v1/usage during a ban says %s, want a ban to %d", usage.Data, ends)
	}
	s.clock.advance(time.Second)
	want(t, c.Get(t, "/v1/pets"), 200, "")
	if got := decode[wireUsage](t, c.Get(t, "/v1/usage")); got.Ban != nil {
		t.Errorf("GET /v1/usage after the ban has one to %d", got.Ban.Ends)
	}
}

type wireUsage struct {
	Plan   string
	Quotas []struct {
		Limit, WindowSeconds, Remaining, Reset int64
	}
	StrikesLeft *int
	Ban         *struct{ Ends int64 }
}

// Of a calendar window the length is that of the one that is open. A smooth quota has no
// windows: what remains is left of the burst, and the reset is when all of it is.
func TestUsage(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, test := range []struct {
		plan   string
		quotas []string
		fields fields
		want   string // resets count from noon
	}{
		{"free", nil, fields{60, 59, 60}, `{"limit":60,"windowSeconds":60,"remaining":59,"reset":60},{"limit":1000,"windowSeconds":86400,"remaining":999,"reset":43200}`},
		{"enterprise", []string{"60/day in Pacific/Auckland", "1000/month from 17"}, fields{60, 59, 23 * 3600},
			`{"limit":60,"windowSeconds":86400,"calendar":"day in Pacific/Auckland","remaining":59,"reset":82800},` +
				`{"limit":1000,"windowSeconds":2592000,"calendar":"month from 17","remaining":999,"reset":2289600}`},
		{"enterprise", []string{"60/minute smooth 10", "1000/day"}, fields{10, 9, 6},
			`{"limit":60,"windowSeconds":60,"burst":10,"remaining":9,"reset":6},{"limit":1000,"windowSeconds":86400,"remaining":999,"reset":43200}`},
	} {
		c := s.with(s.key(t, fmt.Sprint("owner of ", test.quotas), test.plan, test.quotas...))
		charged := c.Get(t, "/v1/pets")
		var usage *contract.Response
		for range 3 {
			usage = c.Get(t, "/v1/usage")
		}
		for _, resp := range []*contract.Response{charged, usage} {
			if d := cmp.Diff(test.fields, fieldsOf(resp)); d != "" {
				t.Errorf("%s: the fields (-want +got):\n%s", resp.Target, d)
			}
		}
		noon := time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC).Unix()
		got := regexp.MustCompile(`"reset":[0-9]+`).ReplaceAllStringFunc(string(usage.Data), func(reset string) string {
			at, _ := strconv.ParseInt(strings.TrimPrefix(reset, `"reset":`), 10, 64)
			return fmt.Sprint(`"reset":`, at-noon)
		})
		want := `{"plan":"` + test.plan + `","quotas":[` + test.want + `],"strikesLeft":10}` + "\n"
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("the body (-want +got):\n%s", d)
		}
	}
}
