package api_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/contract"
)

// decisions records what OnDecision is called with.
type decisions struct {
	mu   sync.Mutex
	seen []string
}

func (l *decisions) add(r *http.Request, c ratelimit.Caller, d ratelimit.Decision, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, fmt.Sprintf("%s %s %s failed=%t", r.Method, c.Subject, d.Outcome, err != nil))
}

// take returns the calls since the last take.
func (l *decisions) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := l.seen
	l.seen = nil
	return seen
}

func TestOnDecisionGetsEachChargedRequest(t *testing.T) {
	t.Parallel()
	var seen decisions
	s := start(t, func(c *api.Config) {
		c.OnDecision = seen.add
		c.Origins = []string{"https://app.example"}
		c.Anonymous = ratelimit.MustPlan("anonymous", ratelimit.DefaultPenalty(), ratelimit.PerMinute(1))
	})
	c := s.with(s.key(t, "ada", "enterprise", "2/minute"))
	for _, test := range []struct {
		name    string
		request contract.Request
		want    []string
	}{
		{"usage", contract.Request{Target: "/v1/usage"}, nil},
		{"preflight", none(contract.Request{Method: "OPTIONS", Target: "/v1/pets", Header: []string{
			"Origin: https://app.example", "Access-Control-Request-Method: GET",
		}}), nil},
		{"allowed", contract.Request{Target: "/v1/pets"}, []string{"GET owner:ada allowed failed=false"}},
		{"not found", contract.Request{Method: "HEAD", Target: "/v1/x"}, []string{"HEAD owner:ada allowed failed=false"}},
		{"limited", contract.Request{Target: "/v1/pets"}, []string{"GET owner:ada limited failed=false"}},
		{"no key", none(contract.Request{Target: "/v1/pets"}), []string{"GET network:127.0.0.1/32 allowed failed=false"}},
		{"no key, limited", none(contract.Request{Target: "/v1/pets"}), []string{"GET network:127.0.0.1/32 limited failed=false"}},
	} {
		c.Do(t, test.request)
		if d := cmp.Diff(test.want, seen.take()); d != "" {
			t.Errorf("%s: OnDecision was called (-want +got):\n%s", test.name, d)
		}
	}
}

func TestOnDecisionGetsFailuresOfTheLimiter(t *testing.T) {
	t.Parallel()
	var seen decisions
	s := start(t, func(c *api.Config) {
		c.OnDecision = seen.add
		c.Limiter = brokenLimiter{}
	})
	want(t, s.Get(t, "/v1/pets"), 503, "unavailable")
	if d := cmp.Diff([]string{"GET owner:roomy limited failed=true"}, seen.take()); d != "" {
		t.Errorf("OnDecision was called (-want +got):\n%s", d)
	}
}

func TestOnDecisionLeavesOutPages(t *testing.T) {
	t.Parallel()
	var seen decisions
	s := start(t, func(c *api.Config) { c.OnDecision = seen.add })
	page(t, s, "GET", "/openapi.json")
	if got := seen.take(); got != nil {
		t.Errorf("OnDecision was called with %q for a page, want no call", got)
	}
}
