package api_test

import (
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/contract"
)

// The client of the tests checks beside this that no other response has them.
func TestDeprecationFields(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 1)
	small := s.with(s.key(t, "small", "enterprise", "1/minute"))
	small.Get(t, "/v1/pets")
	for name, resp := range map[string]*contract.Response{
		"200":         s.Get(t, "/v1/pets/1"),
		"200 to HEAD": s.Do(t, contract.Request{Method: "HEAD", Target: "/v1/pets/1"}),
		"204":         s.Do(t, contract.Request{Method: "OPTIONS", Target: "/v1/pets/1"}),
		"304":         s.Get(t, "/v1/pets/1", "If-None-Match: *"),
		"401":         s.Do(t, none(contract.Request{Target: "/v1/pets/1"})),
		"404":         s.Get(t, "/v1/pets/99"),
		"405":         s.Do(t, contract.Request{Method: "DELETE", Target: "/v1/pets/1"}),
		"412":         s.Get(t, "/v1/pets/1", `If-Match: "x"`),
		"429":         small.Get(t, "/v1/pets/1"),
	} {
		for field, value := range map[string]string{
			"Deprecation": "@1764892800",
			"Sunset":      "Thu, 05 Dec 2030 00:00:00 GMT",
			"Link":        `</v1/pets?status=available>; rel="successor-version", </docs#getPet>; rel="deprecation"`,
		} {
			if got := resp.Header.Values(field); len(got) != 1 || got[0] != value {
				t.Errorf("%s: %s is %q, want %q", name, field, got, value)
			}
		}
	}
}

func TestSunset(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 1)
	sunset := time.Date(2030, time.December, 5, 0, 0, 0, 0, time.UTC)

	s.clock.set(sunset.Add(-time.Nanosecond))
	want(t, s.Get(t, "/v1/pets/1"), 200, "")
	if got := s.Post(t, "/v1/pets", `{"name":"x","categoryId":1}`).Header.Get("Location"); got != "/v1/pets/2" {
		t.Errorf("before the sunset Location is %q, want /v1/pets/2", got)
	}

	s.clock.set(sunset)
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "DELETE"} {
		resp := s.Do(t, contract.Request{Method: method, Target: "/v1/pets/1"})
		want(t, resp, 410, "operation_removed")
		if got := resp.Header.Get("Sunset"); got != "" {
			t.Errorf("%s: Sunset is %q, want none in the past", method, got)
		}
		if resp.Header.Get("Link") == "" || resp.Header.Get("Deprecation") == "" {
			t.Errorf("%s: the successor or the deprecation is not told", method)
		}
	}
	resp := s.Post(t, "/v1/pets", `{"name":"x","categoryId":1}`)
	want(t, resp, 201, "")
	if got, there := resp.Header["Location"]; there {
		t.Errorf("after the sunset Location is %q, want none: there is nothing at it", got)
	}
	want(t, s.Get(t, "/v1/pets"), 200, "")
}

func TestUsesOfDeprecatedOperationsAreCounted(t *testing.T) {
	t.Parallel()
	uses := make(chan string, 10)
	s := start(t, func(c *api.Config) {
		c.OnDeprecatedUse = func(operation, owner string) { uses <- operation + " by " + owner }
	})
	s.pets(t, 1)
	s.Get(t, "/v1/pets/1")
	s.Get(t, "/v1/pets/99")
	s.Do(t, contract.Request{Method: "HEAD", Target: "/v1/pets/1"})
	// None of these is a use of the operation by an owner.
	s.Get(t, "/v1/pets")
	s.Do(t, none(contract.Request{Target: "/v1/pets/1"}))
	s.Do(t, contract.Request{Method: "DELETE", Target: "/v1/pets/1"})
	if len(uses) != 3 {
		t.Fatalf("%d uses are counted, want 3", len(uses))
	}
	for range 3 {
		if use := <-uses; use != "getPet by roomy" {
			t.Errorf("a use is counted of %s, want getPet by roomy", use)
		}
	}
}
