package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/contract"
)

// spellings returns paths that are the same as p (RFC 3986 section 6.2.2.2): one
// for each character, which is percent-encoded, and one with all of them.
func spellings(p string) []string {
	var same []string
	all := ""
	for i, c := range []byte(p) {
		if c == '/' {
			all += "/"
			continue
		}
		escaped := fmt.Sprintf("%%%02x", c)
		all += escaped
		same = append(same, p[:i]+escaped+p[i+1:])
	}
	return append(same, all)
}

// A path may be percent-encoded in many ways. What is served, what is charged and
// what the header fields say depends on none of them.
func TestSpellingOfAPathDoesNotMatter(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 1)
	n := 0
	for _, path := range []string{"/v1/pets", "/v1/pets/1", "/v1/usage", "/v1/nothing", "/openapi.json", "/nothing"} {
		for _, method := range []string{"GET", "HEAD", "POST", "OPTIONS", "DELETE"} {
			if path == "/openapi.json" && (method == "GET" || method == "HEAD" || method == "OPTIONS") {
				continue // is a page, and not charged; see TestDocument
			}
			n++
			c := s.with(s.key(t, fmt.Sprint("owner ", n), "enterprise", "1000/day"))
			plain := c.Do(t, contract.Request{Method: method, Target: path})
			for _, target := range spellings(path) {
				before := c.Get(t, "/v1/usage").Int("X-RateLimit-Remaining")
				resp := c.Do(t, contract.Request{Method: method, Target: target})
				charged := before - c.Get(t, "/v1/usage").Int("X-RateLimit-Remaining")
				wantCharge := int64(1)
				if path == "/v1/usage" && (method == "GET" || method == "HEAD") {
					wantCharge = 0
				}
				if resp.StatusCode != plain.StatusCode || resp.Code() != plain.Code() || charged != wantCharge {
					t.Errorf("%s %s: %d %q for %d units, want what %s has: %d %q for %d",
						method, target, resp.StatusCode, resp.Code(), charged, path, plain.StatusCode, plain.Code(), wantCharge)
				}
			}
		}
	}
}

// Paths that look like /v1/usage and are others are not served, and are charged.
func TestPathsLikeUsageAreCharged(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.with(s.key(t, "small", "enterprise", "1000/day"))
	remaining := int64(1000)
	for _, target := range []string{
		"/v1/usage/", "/v1//usage", "//v1/usage", "/v1/./usage", "/v1/x/../usage", "/v1%2Fusage", "/v1/usage%2F", "/v1/usage%20",
		"/v1/usage;x", "/v1/Usage", "/v1/%55sage", "/v1/%2575sage", "/v1/usage%00", "/v1/%2e/usage",
	} {
		for _, method := range []string{"GET", "HEAD"} {
			remaining--
			resp := c.Do(t, contract.Request{Method: method, Target: target})
			if got := resp.Int("X-RateLimit-Remaining"); resp.StatusCode != 404 || got != remaining {
				t.Errorf("%s %s: %d with %d remaining, want 404 with %d", method, target, resp.StatusCode, got, remaining)
				remaining = got
			}
		}
	}
}

// A ban leaves a client /v1/usage, in each spelling, and nothing else.
func TestSpellingsDuringABan(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.with(s.key(t, "pushy", "enterprise", "1/minute"))
	if err := s.limits.Ban(t.Context(), "owner:pushy", time.Minute); err != nil {
		t.Fatal(err)
	}
	for _, target := range append(spellings("/v1/usage"), "/v1/usage", "/v1/usage?x", "http://elsewhere.example/v1/%75sage") {
		resp := c.Get(t, target)
		want(t, resp, 200, "")
		if !strings.Contains(string(resp.Data), `"ban"`) {
			t.Errorf("GET %s during a ban says %s, want the ban", target, resp.Data)
		}
	}
	for _, target := range append(spellings("/v1/pets"), "/v1/usage/", "/v1//usage") {
		want(t, c.Get(t, target), 429, "api_key_banned")
	}
}
