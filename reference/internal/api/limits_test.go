package api_test

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
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

// fewUncharged lets a caller have three uncharged requests a minute, and believes
// the client's address that a test sends.
func fewUncharged(c *api.Config) {
	c.HTTP.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	c.Uncharged = ratelimit.MustPlan("uncharged", ratelimit.Penalty{}, ratelimit.PerMinute(3))
	c.Anonymous = ratelimit.MustPlan("anonymous", ratelimit.Penalty{}, ratelimit.PerMinute(50))
	c.CORSOrigins = []string{origin}
}

// What is not charged has a quota of its own: a network for pages and for preflights, and
// an owner for its usage, also during a ban. That quota limits nothing else.
func TestUnchargedRequestsAreLimited(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, method string
		targets      []string
		header       string
		limit        string // X-RateLimit-Limit of what is served
		banned       bool
	}{
		{"pages", "GET", []string{"/openapi.json", "/docs", "/openap%69.json"}, "Accept-Encoding: gzip", "3", false},
		{"preflights", "OPTIONS", []string{"/v1/pets", "/v1/pets/1", "/v1/usage"}, "Access-Control-Request-Method: POST", "3", false},
		{"usage", "GET", []string{"/v1/usage", "/v1/%75sage", "/v1/usage?x"}, "Accept: */*", "100", false},
		{"usage during a ban", "GET", []string{"/v1/usage", "/v1/%75sage", "/v1/usage?x"}, "Accept: */*", "100", true},
	} {
		s := start(t, fewUncharged)
		c := s.with(s.key(t, "curious", "enterprise", "100/day"))
		if test.banned {
			must(t, s.limits.Ban(t.Context(), "owner:curious", time.Hour, ""))
		}
		header := []string{test.header, "Origin: " + origin, "Authorization: Bearer " + c.Key}
		for i, target := range append(test.targets, test.targets[0]) {
			resp, _ := unchecked(t, s, test.method, target, header...)
			got := fmt.Sprint(resp.StatusCode >= 400, " ", resp.Header.Get("X-RateLimit-Limit"), " ", resp.Header.Get("Retry-After"))
			want := "false " + test.limit + " "
			if i == len(test.targets) {
				want = "true 3 55"
			}
			if got != want {
				t.Errorf("%s: request %d: refused, the limit and Retry-After are %q, want %q", test.name, i+1, got, want)
			}
		}
		if !test.banned {
			want(t, c.Get(t, "/v1/pets"), 200, "")
			if resp := c.Get(t, "/v1/nothing"); resp.Int("X-RateLimit-Remaining") != 98 {
				t.Errorf("%s: %d of 100 requests are left, want 98", test.name, resp.Int("X-RateLimit-Remaining"))
			}
		}
		if resp := s.Do(t, none(contract.Request{Target: "/v1/pets"})); resp.StatusCode != 401 || resp.Int("X-RateLimit-Remaining") != 49 {
			t.Errorf("%s: without a key %d with %d requests left, want 401 with 49 of 50", test.name, resp.StatusCode, resp.Int("X-RateLimit-Remaining"))
		}
		want(t, s.Get(t, "/v1/usage"), 200, "") // of another owner
		if resp, _ := page(t, s, "GET", "/docs", "X-Forwarded-For: 192.0.2.7"); resp.StatusCode != 200 {
			t.Errorf("%s: another network gets %d, want 200", test.name, resp.StatusCode)
		}
		s.clock.advance(55 * time.Second)
		if resp, _ := unchecked(t, s, test.method, test.targets[0], header...); resp.StatusCode >= 400 {
			t.Errorf("%s: after Retry-After %d, want that it is served", test.name, resp.StatusCode)
		}
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

// An owner of a suspended plan can still ask why. Requests of an unlimited plan have no
// fields.
func TestPlansWithoutQuotas(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		plan            *ratelimit.Plan
		pets            string
		usage, body     string
		outcome, denied string
	}{
		{ratelimit.SuspendedPlan("unpaid"), "403 0 0", "200 0 0", `{"plan":"unpaid","quotas":[],"suspended":true}`, "suspended", "plan_suspended"},
		{ratelimit.UnlimitedPlan("internal"), "200", "200", `{"plan":"internal","quotas":[]}`, "allowed", ""},
	} {
		var seen decisions
		s := start(t, func(c *api.Config) {
			withPlan(test.plan)(c)
			c.OnDecision = seen.add
		})
		key := s.key(t, "ada", "any")
		for range 15 { // more than the strikes of a ban
			if got, body := plainly(t, s, key, "/v1/pets"); got != test.pets || !strings.Contains(string(body), test.denied) {
				t.Errorf("%s: got %s %s, want %s %s", test.outcome, got, body, test.pets, test.denied)
			}
		}
		if got, body := plainly(t, s, key, "/v1/usage"); got != test.usage || strings.TrimSpace(string(body)) != test.body {
			t.Errorf("getUsage: got %s %s, want %s %s", got, body, test.usage, test.body)
		}
		if got := seen.take(); len(got) != 15 || got[14] != "GET owner:ada "+test.outcome+" failed=false" {
			t.Errorf("OnDecision was called with %q, want 15 times %s", got, test.outcome)
		}
	}
}

// A ban is for the owner: for all its keys, and all requests that are charged.
func TestBan(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.with(s.key(t, "pushy", "enterprise", "2/minute"))
	for _, status := range []int{200, 200, 429} {
		if resp := c.Get(t, "/v1/pets"); resp.StatusCode != status {
			t.Errorf("status %d, want %d", resp.StatusCode, status)
		}
	}
	s.clock.advance(3 * time.Second) // over the grace
	for range 10 {
		want(t, c.Get(t, "/v1/pets"), 429, "rate_limit_exceeded")
	}
	if got := decode[wireUsage](t, c.Get(t, "/v1/usage")); got.StrikesLeft == nil || *got.StrikesLeft != 0 {
		t.Errorf("GET /v1/usage after ten strikes says %+v, want that none is left", got)
	}
	other := s.with(s.key(t, "pushy", "enterprise", "2/minute"))
	for i, resp := range []*contract.Response{c.Get(t, "/v1/pets"), other.Get(t, "/v1/pets"), c.Get(t, "/openapi.yaml")} {
		want(t, resp, 429, "api_key_banned")
		if got := resp.Int("Retry-After"); got != 60 {
			t.Errorf("request %d: Retry-After is %d, want the ban of 60 seconds", i+1, got)
		}
	}
	usage, ends := c.Get(t, "/v1/usage"), s.clock.Now().Unix()+60
	if got := decode[wireUsage](t, usage); usage.StatusCode != 200 || got.Ban == nil || got.Ban.Ends != ends {
		t.Errorf("GET /v1/usage during a ban says %s, want a ban to %d", usage.Data, ends)
	}
	s.clock.advance(time.Minute)
	want(t, c.Get(t, "/v1/pets"), 200, "")
	if got := decode[wireUsage](t, c.Get(t, "/v1/usage")); got.Ban != nil {
		t.Errorf("GET /v1/usage after the ban has one to %d", got.Ban.Ends)
	}
}

type wireUsage struct {
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

func TestUsageOfASoftQuota(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(60), ratelimit.PerDay(100).Soft())
	for used, want := range map[int64][2]int64{40: {60, 0}, 100: {0, 0}, 130: {0, 30}} {
		d := engine.Uncounted(plan, 1, time.Unix(1_800_000_000, 0))
		d.States[1].Remaining -= used
		if got := api.QuotasOf(&d)[1]; got.Limit != 100 || got.Remaining != want[0] || got.Over != want[1] {
			t.Errorf("of %d used: %+v, want %d left and %d over", used, got, want[0], want[1])
		}
	}
}
