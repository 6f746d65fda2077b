package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/contract"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

var update = flag.Bool("update", false, "write the texts of errors to testdata/errors.txt")

const errorsFile = "testdata/errors.txt"

// A situation is one in which a client reads an error.
type situation struct {
	name    string
	adjust  func(*api.Config)
	quotas  []string // of the key
	prepare func(*testing.T, *service, *contract.Client)
	request contract.Request
}

// fails returns a config whose store fails in this way.
func fails(err error) func(*api.Config) {
	return func(c *api.Config) {
		c.Pets = &brokenStore{fail: func(context.Context) error { return err }}
	}
}

// situations are at least one for each code.
func situations() []situation {
	type request = contract.Request
	post := func(body string, header ...string) request {
		return request{Method: "POST", Target: "/v1/pets", Body: body, Header: append(header, "Content-Type: application/json")}
	}
	list := request{Target: "/v1/pets"}
	times := func(n int) func(*testing.T, *service, *contract.Client) {
		return func(t *testing.T, _ *service, c *contract.Client) {
			for range n {
				c.Get(t, "/v1/pets")
			}
		}
	}
	banned := func(subject string) func(*testing.T, *service, *contract.Client) {
		return func(t *testing.T, s *service, _ *contract.Client) {
			must(t, s.limits.Ban(t.Context(), subject, time.Minute, "strikes"))
		}
	}
	return []situation{
		{name: "empty body", request: request{Method: "POST", Target: "/v1/pets"}},
		{name: "one member missing", request: post(`{"categoryId":3}`)},
		{name: "two faults", request: post(`{}`)},
		{name: "blank name", request: post(`{"name":" ","categoryId":3}`)},
		{name: "long name", request: post(`{"name":"` + strings.Repeat("x", 256) + `","categoryId":3}`)},
		{name: "limit", request: request{Target: "/v1/pets?limit=101"}},
		{name: "status", request: request{Target: "/v1/pets?status=lost"}},
		{name: "cursor", request: request{Target: "/v1/pets?cursor=x"}},
		{name: "repeated", request: request{Target: "/v1/pets?limit=1&limit=1"}},
		{name: "list", request: request{Target: "/v1/pets?status[]=sold"}},
		{name: "malformed query", request: request{Target: "/v1/pets?limit=%zz"}},
		{name: "query that is not UTF-8", request: request{Target: "/v1/pets?x=%ff"}},
		{name: "no key", request: none(list)},
		{name: "wrong key", request: request{Target: "/v1/pets", Key: new("x")}},
		{name: "two keys", request: request{Target: "/v1/pets", Header: []string{"Authorization: Bearer x"}}},
		{name: "path", request: request{Target: "/v1/nothing"}},
		{name: "pet", request: request{Target: "/v1/pets/99"}},
		{name: "method", request: request{Method: "DELETE", Target: "/v1/pets"}},
		{name: "removed", request: request{Target: "/v1/pets/1"}, prepare: func(_ *testing.T, s *service, _ *contract.Client) {
			s.clock.set(time.Date(2030, time.December, 5, 0, 0, 0, 0, time.UTC))
		}},
		{name: "precondition", request: request{Target: "/v1/pets", Header: []string{`If-Match: "x"`}}},
		{name: "large body", request: post(strings.Repeat(" ", 70000))},
		{name: "long target", request: request{Target: "/v1/pets?" + strings.Repeat("x", 9000)}},
		{name: "media type", request: request{Method: "POST", Target: "/v1/pets", Body: "x", Header: []string{"Content-Type: text/plain"}}},
		{name: "limited", quotas: []string{"60/minute"}, prepare: times(60), request: list},
		{name: "limited network", adjust: func(c *api.Config) {
			c.Anonymous = ratelimit.MustPlan("anonymous", ratelimit.DefaultPenalty(), ratelimit.PerMinute(1))
		}, prepare: func(t *testing.T, s *service, _ *contract.Client) { s.Do(t, none(list)) }, request: none(list)},
		{name: "banned key", request: list, prepare: banned("owner:reader")},
		{name: "banned network", request: none(list), prepare: banned("network:127.0.0.1/32")},
		{name: "suspended plan", request: list, adjust: withPlan(ratelimit.SuspendedPlan("unpaid"))},
		{name: "idempotency key", request: post(duke, "Idempotency-Key: a b")},
		{name: "idempotency key reused", request: post(duke, once("x")),
			prepare: func(t *testing.T, _ *service, c *contract.Client) {
				c.Post(t, "/v1/pets", `{"name":"x","categoryId":1}`, once("x"))
			}},
		{name: "failure", adjust: fails(errors.New("x")), request: list},
		{name: "store", adjust: fails(store.ErrUnavailable), request: list},
		{name: "key store", request: list, adjust: func(c *api.Config) {
			c.Plan = func(string, []string) (*ratelimit.Plan, error) { return nil, errors.New("no such plan") }
		}},
		{name: "limiter", request: list, adjust: func(c *api.Config) { c.Limiter = brokenLimiter{} }},
	}
}

// What a client reads is part of the API. The file has it all; -update writes it.
func TestTextsOfErrors(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	messages := make(map[string][]string) // by code
	shared := start(t, nil)
	for _, situation := range situations() {
		t.Run(situation.name, func(t *testing.T) {
			s := shared
			if situation.adjust != nil || situation.prepare != nil {
				s = start(t, situation.adjust)
			}
			if situation.name == "limiter" {
				s.Now = time.Now // which the fields of undecided requests are from
			}
			quotas := situation.quotas
			if quotas == nil {
				quotas = []string{"1000/minute"}
			}
			c := s.with(s.key(t, "reader", "enterprise", quotas...))
			c.Now = s.Now
			if situation.prepare != nil {
				situation.prepare(t, s, c)
			}
			resp := c.Do(t, situation.request)
			e, err := resp.Error()
			if err != nil {
				t.Fatalf("%d: %v", resp.StatusCode, err)
			}
			fmt.Fprintf(&text, "%s: %d %s\n\t%s\n", situation.name, resp.StatusCode, e.Code, e.Message)
			messages[e.Code] = append(messages[e.Code], e.Message)
		})
	}
	if *update {
		must(t, os.WriteFile(errorsFile, []byte(text.String()), 0o644))
	}
	want, err := os.ReadFile(errorsFile)
	must(t, err)
	if d := cmp.Diff(string(want), text.String()); d != "" {
		t.Errorf("the texts (-want +got):\n%s", d)
	}
	for code, example := range documentedErrors(t, shared.document) {
		if !slices.Contains(messages[code], example) {
			t.Errorf("the document has the message %q for %s, and clients read one of\n%s", example, code, strings.Join(messages[code], "\n"))
		}
		delete(messages, code)
	}
	if len(messages) > 0 {
		t.Errorf("the document has no example of the codes %q", slices.Sorted(maps.Keys(messages)))
	}
}

// documentedErrors returns the message of the example of each code.
func documentedErrors(t *testing.T, document []byte) map[string]string {
	t.Helper()
	var d struct {
		Components struct {
			Examples map[string]struct {
				Value struct{ Code, Message string }
			}
		}
	}
	must(t, json.Unmarshal(document, &d))
	examples := make(map[string]string)
	for _, e := range d.Components.Examples {
		examples[e.Value.Code] = e.Value.Message
	}
	return examples
}

// Each request has several things wrong with it, and is answered for the first of
// them in the order of the checks.
func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 1)
	long := "?" + strings.Repeat("x", 9000)
	large := `{"` + strings.Repeat("x", 70000)
	text, json := "Content-Type: text/plain", "Content-Type: application/json"
	never := `If-Match: "never"`

	type request = contract.Request
	tests := []struct {
		name    string
		request request
		status  int
		code    string
	}{
		{"target before key", none(request{Target: "/v1/pets" + long}), 414, "uri_too_long"},
		{"target before path", request{Method: "DELETE", Target: "/v1/nothing" + long}, 414, "uri_too_long"},
		{"key before path", none(request{Target: "/v1/nothing"}), 401, "missing_api_key"},
		{"key before method", none(request{Method: "DELETE", Target: "/v1/pets"}), 401, "missing_api_key"},
		{"key before OPTIONS", none(request{Method: "OPTIONS", Target: "/v1/pets"}), 401, "missing_api_key"},
		{"key before media type", none(request{Method: "POST", Target: "/v1/pets", Body: "x", Header: []string{text}}), 401, "missing_api_key"},
		{"key before parameters", none(request{Target: "/v1/pets?limit=x"}), 401, "missing_api_key"},
		{"key before the item", none(request{Target: "/v1/pets/99"}), 401, "missing_api_key"},
		{"key of the wrong form", request{Key: new("x"), Target: "/v1/pets/99"}, 401, "invalid_api_key"},
		{"path before method", request{Method: "DELETE", Target: "/v1/nothing"}, 404, "not_found"},
		{"path before media type", request{Method: "POST", Target: "/v1/pets/", Body: "x", Header: []string{text}}, 404, "not_found"},
		{"method before media type", request{Method: "PUT", Target: "/v1/pets", Body: "x", Header: []string{text}}, 405, "method_not_allowed"},
		{"method before the item", request{Method: "DELETE", Target: "/v1/pets/99"}, 405, "method_not_allowed"},
		{"media type before size", request{Method: "POST", Target: "/v1/pets", Body: large, Header: []string{text}}, 415, "unsupported_media_type"},
		{"size before content", request{Method: "POST", Target: "/v1/pets", Body: large, Header: []string{json, never}}, 413, "body_too_large"},
		{"method before the idempotency key", request{Method: "PUT", Target: "/v1/pets", Header: []string{"Idempotency-Key: a b"}}, 405, "method_not_allowed"},
		{"idempotency key before media type", request{Method: "POST", Target: "/v1/pets", Body: "x", Header: []string{text, "Idempotency-Key: a b"}}, 400, "invalid_idempotency_key"},
		{"content before preconditions", request{Method: "POST", Target: "/v1/pets", Body: "{}", Header: []string{json, never}}, 400, "invalid_body"},
		{"parameters before preconditions", request{Target: "/v1/pets?limit=x", Header: []string{never}}, 400, "invalid_parameter"},
		{"the item before preconditions", request{Target: "/v1/pets/99", Header: []string{never, "If-None-Match: *"}}, 404, "pet_not_found"},
		{"preconditions last", request{Target: "/v1/pets/1", Header: []string{never}}, 412, "precondition_failed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			want(t, s.Do(t, test.request), test.status, test.code)
		})
	}

	t.Run("after the sunset", func(t *testing.T) {
		s.clock.set(time.Date(2030, time.December, 5, 0, 0, 0, 0, time.UTC))
		want(t, s.Do(t, none(request{Target: "/v1/pets/1"})), 401, "missing_api_key")
		want(t, s.Do(t, request{Target: "/v1/nothing"}), 404, "not_found")
		want(t, s.Do(t, request{Method: "DELETE", Target: "/v1/pets/1"}), 410, "operation_removed")
		want(t, s.Do(t, request{Target: "/v1/pets/x", Header: []string{never}}), 410, "operation_removed")
	})

	t.Run("a quota that is used up", func(t *testing.T) {
		c := s.with(s.key(t, "small", "enterprise", "1/minute"))
		c.Get(t, "/v1/pets")
		for _, test := range tests {
			if test.request.Key == nil {
				want(t, c.Do(t, test.request), 429, "rate_limit_exceeded")
			}
		}
	})
}

// Whatever becomes of a request with a valid key, it is charged once.
func TestEveryRequestIsChargedOnce(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 1)
	c := s.with(s.key(t, "small", "enterprise", "1000/day"))
	type request = contract.Request
	remaining := int64(1000)
	for _, test := range []struct {
		request request
		status  int
	}{
		{request{Target: "/v1/pets"}, 200},
		{request{Method: "HEAD", Target: "/v1/pets"}, 200},
		{request{Target: "/v1/pets/1"}, 200},
		{request{Target: "/v1/pets/1", Header: []string{"If-None-Match: *"}}, 304},
		{request{Method: "OPTIONS", Target: "/v1/pets"}, 204},
		{request{Method: "OPTIONS", Target: "*"}, 204},
		{request{Method: "POST", Target: "/v1/pets", Body: `{"name":"x","categoryId":1}`, Header: []string{"Content-Type: application/json"}}, 201},
		{request{Method: "POST", Target: "/v1/pets", Body: `{}`, Header: []string{"Content-Type: application/json"}}, 400},
		{request{Target: "/v1/pets?limit=x"}, 400},
		{request{Target: "/v1/pets/99"}, 404},
		{request{Target: "/v1/nothing"}, 404},
		{request{Target: "/nothing"}, 404},
		{request{Target: "/v1/usage/"}, 404}, // looks like a request that is not charged, as the next ones
		{request{Target: "/v1/x/../usage"}, 404},
		{request{Target: "/v1/%2575sage"}, 404},
		{request{Method: "POST", Target: "/openapi.json"}, 405},
		{request{Method: "PUT", Target: "/v1/usage"}, 405},
		{request{Target: "/v1/pets/1", Header: []string{`If-Match: "x"`}}, 412},
		{request{Method: "POST", Target: "/v1/pets", Body: strings.Repeat(" ", 70000), Header: []string{"Content-Type: application/json"}}, 413},
		{request{Target: "/v1/pets?" + strings.Repeat("x", 9000)}, 414},
		{request{Method: "POST", Target: "/v1/pets", Body: `x`}, 415},
	} {
		remaining--
		resp := c.Do(t, test.request)
		if resp.StatusCode != test.status {
			t.Errorf("%s %.40s: status %d, want %d", resp.Method, resp.Target, resp.StatusCode, test.status)
		}
		if got := resp.Int("X-RateLimit-Remaining"); got != remaining {
			t.Errorf("%s %.40s: X-RateLimit-Remaining is %d, want %d", resp.Method, resp.Target, got, remaining)
			remaining = got
		}
	}
	if got := c.Get(t, "/v1/usage").Int("X-RateLimit-Remaining"); got != remaining {
		t.Errorf("GET /v1/usage: X-RateLimit-Remaining is %d, want %d: it is not charged", got, remaining)
	}
}
