package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/api"
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

func TestAuthentication(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	key := s.Key
	flipped := key[:len(key)-1] + string("01"[min(1, strings.IndexByte("0", key[len(key)-1])+1)])
	unknown := s.format.Generate().Reveal()
	const missing, invalid, repeated = "missing_api_key", "invalid_api_key", "invalid_request"
	tests := []struct {
		name   string
		header string
		code   string // "": let in
	}{
		{"as it should be", "Authorization: Bearer " + key, ""},
		{"the scheme in any case", "authorization: bEaReR " + key, ""},
		{"several spaces", "Authorization: Bearer     " + key, ""},
		{"white space around", "Authorization:  \tBearer " + key + " \t ", ""},
		{"nothing", "X: y", missing},
		{"an empty field", "Authorization:", missing},
		{"the scheme alone", "Authorization: Bearer", missing},
		{"the scheme and a space", "Authorization: Bearer ", missing},
		{"another scheme", "Authorization: Basic " + key, missing},
		{"a scheme that begins alike", "Authorization: BearerX " + key, missing},
		{"no scheme", "Authorization: " + key, missing},
		{"a field that is not for it", "X-API-Key: " + key, missing},
		{"the field of proxies", "Proxy-Authorization: Bearer " + key, missing},
		{"a cookie", "Cookie: access_token=" + key, missing},
		{"a tab", "Authorization: Bearer\t" + key, invalid},
		{"something after the key", "Authorization: Bearer " + key + " x", invalid},
		{"a list", "Authorization: Bearer " + key + ", Bearer " + key, invalid},
		{"in quotes", `Authorization: Bearer "` + key + `"`, invalid},
		{"as a parameter", "Authorization: Bearer token=" + key, invalid},
		{"padding", "Authorization: Bearer " + key + "=", invalid},
		{"an encoded space", "Authorization: Bearer " + key + "%20", invalid},
		{"another prefix", "Authorization: Bearer pet_test_" + key[len("pet_live_"):], invalid},
		{"in lower case", "Authorization: Bearer " + strings.ToLower(key), invalid},
		{"one character changed", "Authorization: Bearer " + flipped, invalid},
		{"null", "Authorization: Bearer null", invalid},
		{"octets that are not ASCII", "Authorization: Bearer \xc3\xa9", invalid},
		{"8000 octets", "Authorization: Bearer " + strings.Repeat("a", 8000), invalid},
		{"a key that was never issued", "Authorization: Bearer " + unknown, invalid},
		{"two lines", "Authorization: Bearer " + key + "\r\nAuthorization: Bearer " + key, repeated},
		{"a valid line and another", "Authorization: Bearer " + key + "\r\nAuthorization: Basic x", repeated},
		{"an empty line and a valid one", "Authorization:\r\nAuthorization: Bearer " + key, repeated},
	}
	challenges := map[string]string{
		missing:  `Bearer realm="pets"`,
		invalid:  `Bearer realm="pets", error="invalid_token", error_description="The API key is not valid"`,
		repeated: `Bearer realm="pets", error="invalid_request", error_description="More than one Authorization header was sent"`,
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			resp := s.Do(t, none(contract.Request{Target: "/v1/pets", Header: []string{test.header}}))
			if test.code == "" {
				want(t, resp, 200, "")
				return
			}
			status := 401
			if test.code == repeated {
				status = 400
			}
			want(t, resp, status, test.code)
			if got := resp.Header.Get("WWW-Authenticate"); got != challenges[test.code] {
				t.Errorf("WWW-Authenticate is %s, want %s", got, challenges[test.code])
			}
		})
	}
	for _, target := range []string{"/v1/pets?access_token=" + key, "/v1/pets?key=" + key} {
		resp := s.Do(t, none(contract.Request{Target: target}))
		want(t, resp, 401, missing)
	}
}

// What a 401 says does not depend on what is asked for, nor on why a key is not
// valid.
func TestRefusedKeysAreToldNothing(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 1)
	revoked, expired := s.format.Generate(), s.format.Generate()
	k := s.issue(t, revoked, newKey("enterprise", "9/minute"))
	if _, err := s.db.RevokeKey(t.Context(), k.ID, s.clock.Now()); err != nil {
		t.Fatal(err)
	}
	short := newKey("enterprise", "9/minute")
	short.Expires = s.clock.Now().Add(time.Minute)
	s.issue(t, expired, short)
	s.clock.advance(time.Minute)

	answers := make(map[string]bool)
	for _, key := range []string{revoked.Reveal(), expired.Reveal(), s.format.Generate().Reveal(), s.Key[:len(s.Key)-1] + "!", "x"} {
		for _, target := range []string{"/v1/pets", "/v1/pets?limit=x", "/v1/usage", "/v1/nothing"} {
			resp := s.Do(t, contract.Request{Target: target, Key: &key})
			want(t, resp, 401, "invalid_api_key")
			answers[fmt.Sprint(string(resp.Data), resp.Header["Www-Authenticate"])] = true
		}
		if a, b := s.Do(t, contract.Request{Target: "/v1/pets/1", Key: &key}), s.Do(t, contract.Request{Target: "/v1/pets/2", Key: &key}); string(a.Data) != string(b.Data) {
			t.Errorf("a 401 for a pet that is there says %s, and for one that is not %s", a.Data, b.Data)
		}
	}
	if len(answers) != 1 {
		t.Errorf("refused keys get %d different answers, want one: %v", len(answers), answers)
	}
}

func TestKeysActWithinASecond(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	secret := s.format.Generate()
	c := s.with(secret.Reveal())
	want(t, c.Get(t, "/v1/pets"), 401, "invalid_api_key")
	k := s.issue(t, secret, newKey("enterprise", "9/minute"))
	s.clock.advance(time.Second)
	want(t, c.Get(t, "/v1/pets"), 200, "")
	if _, err := s.db.RevokeKey(t.Context(), k.ID, s.clock.Now()); err != nil {
		t.Fatal(err)
	}
	s.clock.advance(time.Second)
	want(t, c.Get(t, "/v1/pets"), 401, "invalid_api_key")
}

// A request with two Authorization lines is 400 wherever one with a wrong key is
// 401. It counts for the network, and not for the owner of either key.
func TestTwoAuthorizationLines(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *api.Config) {
		c.Anonymous = ratelimit.MustPlan("anonymous", ratelimit.Penalty{}, ratelimit.PerMinute(100))
	})
	s.pets(t, 1)
	c := s.with(s.key(t, "double", "enterprise", "9/minute"))
	twice := "Authorization: Bearer " + c.Key
	left := int64(100)
	for _, r := range []contract.Request{
		{Target: "/v1/pets"}, {Target: "/v1/pets/1"}, {Method: "HEAD", Target: "/v1/pets/1"}, {Target: "/v1/pets/99"}, {Target: "/v1/usage"},
		{Target: "/v1/%75sage"}, {Target: "/v1/nothing"}, {Target: "/v1/pets/"}, {Method: "DELETE", Target: "/v1/pets"}, {Method: "OPTIONS", Target: "/v1/pets"},
		{Method: "POST", Target: "/v1/pets", Body: "x"},
	} {
		r.Header = []string{twice}
		resp := c.Do(t, r)
		want(t, resp, 400, "invalid_request")
		left--
		if got := resp.Int("X-RateLimit-Remaining"); got != left {
			t.Errorf("%s %s: X-RateLimit-Remaining is %d, want %d of the network", resp.Method, resp.Target, got, left)
		}
	}
	if got := c.Get(t, "/v1/usage").Int("X-RateLimit-Remaining"); got != 9 {
		t.Errorf("the owner has %d of 9 requests left, want all", got)
	}
}
