package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/contract"
)

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
