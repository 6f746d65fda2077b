package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/api"
)

// plainly sends a request without the checks of a contract, which expect header fields
// that plans without quotas do not have. It returns the status, the fields and the body.
func plainly(t *testing.T, s *service, key, target string) (got string, body []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+s.Addr+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	got = fmt.Sprint(resp.StatusCode)
	for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After"} {
		if v := resp.Header.Get(name); v != "" {
			got += " " + v
		}
	}
	if body, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
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
	if err := json.Unmarshal(limited.Get(t, "/v1/usage").Data, &usage); err != nil {
		t.Fatal(err)
	}
	if usage.Plan != "internal" || len(usage.Quotas) != 0 || len(usage.KeyQuotas) != 1 || usage.KeyQuotas[0].Remaining != 0 {
		t.Errorf("getUsage of the key says %+v, want the plan internal, no quotas, and nothing left of the key's", usage)
	}
}
