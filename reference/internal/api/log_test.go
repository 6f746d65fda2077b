package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/contract"
)

func TestRequestLog(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *api.Config) {
		c.Anonymous = ratelimit.MustPlan("anonymous", ratelimit.DefaultPenalty(), ratelimit.PerMinute(2))
	})
	s.pets(t, 1)
	secret := s.format.Generate()
	key := s.issue(t, secret, newKey("enterprise", "6/minute"))
	c := s.with(secret.Reveal())
	const network = "127.0.0.1/32"
	document, _ := page(t, s, "GET", "/openapi.json")
	type line = map[string]any
	tests := []struct {
		request contract.Request
		want    line
	}{
		{contract.Request{Target: "/v1/pets?limit=7&status=sold"}, line{"method": "GET", "route": "/v1/pets", "status": 200., "outcome": "allowed", "key": key.ID}},
		{contract.Request{Method: "HEAD", Target: "/v1/pets/1"}, line{"method": "HEAD", "route": "/v1/pets/{petId}", "status": 200., "outcome": "allowed", "key": key.ID}},
		{contract.Request{Target: "/v1/usage"}, line{"method": "GET", "route": "/v1/usage", "status": 200., "outcome": "uncharged", "key": key.ID}},
		{contract.Request{Target: "/v1/secret-path"}, line{"method": "GET", "route": "", "status": 404., "outcome": "allowed", "key": key.ID}},
		{contract.Request{Method: "FORGED\u007c", Target: "/v1/pets"}, line{"method": "other", "route": "", "status": 405., "outcome": "allowed", "key": key.ID}},
		{contract.Request{Method: "POST", Target: "/v1/pets", Body: "{}"}, line{"method": "POST", "route": "/v1/pets", "status": 415., "outcome": "allowed", "key": key.ID}},
		{contract.Request{Method: "OPTIONS", Target: "*"}, line{"method": "OPTIONS", "route": "", "status": 204., "outcome": "allowed", "key": key.ID}},
		{contract.Request{Target: "/v1/pets"}, line{"method": "GET", "route": "/v1/pets", "status": 429., "outcome": "limited", "key": key.ID}},
		{none(contract.Request{Target: "/v1/pets"}), line{"method": "GET", "route": "/v1/pets", "status": 401., "outcome": "allowed", "plan": "anonymous"}},
		{contract.Request{Target: "/nothing", Key: new("pet_live_x")}, line{"method": "GET", "route": "", "status": 404., "outcome": "allowed", "plan": "anonymous"}},
		{none(contract.Request{Target: "/v1/pets?secret=1"}), line{"method": "GET", "route": "/v1/pets", "status": 429., "outcome": "limited", "plan": "anonymous"}},
	}
	var responses []*contract.Response
	for _, test := range tests {
		responses = append(responses, c.Do(t, test.request))
	}
	text, lines := s.logged(t)
	if got := lines[document.Header.Get("X-Request-Id")]; got["outcome"] != "uncharged" || got["plan"] != "uncharged" || got["remaining"] != 599. {
		t.Errorf("the line of a page is %v, want what remains of the quota of such requests", got)
	}
	for i, test := range tests {
		resp, got := responses[i], lines[responses[i].Header.Get("X-Request-Id")]
		test.want["msg"], test.want["level"] = "request", "INFO"
		test.want["request_id"] = resp.Header.Get("X-Request-Id")
		test.want["bytes"] = float64(len(resp.Data))
		test.want["network"] = network
		if ms, ok := got["duration_ms"].(float64); !ok || ms < 0 {
			t.Errorf("%s %s: the line has duration_ms %v, want milliseconds", resp.Method, resp.Target, got["duration_ms"])
		}
		test.want["remaining"] = float64(resp.Int("X-RateLimit-Remaining"))
		if _, ok := test.want["plan"]; !ok {
			test.want["plan"] = "enterprise"
		}
		delete(got, "time")
		delete(got, "duration_ms")
		if d := cmp.Diff(test.want, got); d != "" {
			t.Errorf("%s %s (-want +got):\n%s", resp.Method, resp.Target, d)
		}
	}
	for _, secret := range []string{secret.Reveal(), "secret", "limit=7"} {
		if strings.Contains(text, secret) {
			t.Errorf("the log holds %s, which was sent: %s", secret, text)
		}
	}
}

// The log says under which network a request was counted, and why it is a proxy's
// if that did not name its client.
func TestRequestLogOfProxies(t *testing.T) {
	t.Parallel()
	s := start(t, fewUncharged)
	tests := []struct{ header, network, reason string }{
		{"X-Forwarded-For: 192.0.2.7", "192.0.2.7/32", ""},
		{"X-Forwarded-For: 64:ff9b::192.0.2.9", "192.0.2.9/32", ""},
		{"X: y", "127.0.0.1/32", "proxy: it sent no header with the client's address"},
		{"X-Forwarded-For: s3cret", "127.0.0.1/32", "proxy: its header with the client's address is unreadable"},
		{"X-Forwarded-For: 192.0.2.7, , 127.0.0.3", "127.0.0.3/32", "proxy: its header with the client's address is unreadable"},
	}
	var ids []string
	for _, test := range tests {
		resp := s.Do(t, none(contract.Request{Target: "/v1/pets", Header: []string{test.header}}))
		want(t, resp, 401, "missing_api_key")
		ids = append(ids, resp.Header.Get("X-Request-Id"))
	}
	text, lines := s.logged(t)
	for i, test := range tests {
		line := lines[ids[i]]
		if reason, _ := line["network_of"].(string); line["network"] != test.network || reason != test.reason {
			t.Errorf("%s: the log has %v, want network %s of %q", test.header, line, test.network, test.reason)
		}
	}
	if strings.Contains(text, "s3cret") {
		t.Errorf("the log holds a header that was sent: %s", text)
	}
}

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

// The line about a failure names the route as the line of the request does.
func TestFailuresAreLoggedUnderTheRoute(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.Do(t, contract.Request{Target: "/v1/usage"}) // remembers the key
	must(t, s.db.Close())
	for _, target := range []string{"/v1/pets", "/v1/pets/1"} {
		s.Do(t, contract.Request{Target: target})
	}
	text, _ := s.logged(t)
	for _, route := range []string{"/v1/pets", "/v1/pets/{petId}"} {
		want := fmt.Sprintf(`"method":"GET","route":%q,"status":5`, route)
		if got := strings.Count(text, want); got != 2 {
			t.Errorf("%d lines have %s, want that of the request and that of its failure:\n%s", got, want, text)
		}
	}
}
