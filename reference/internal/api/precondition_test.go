package api_test

import (
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/contract"
)

func TestConditionalRequests(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 2)
	etag := s.Get(t, "/v1/pets/1").Header.Get("ETag")
	if other := s.Get(t, "/v1/pets/2").Header.Get("ETag"); etag == other || !strings.HasPrefix(etag, `"`) {
		t.Fatalf("the ETags of two pets are %s and %s, want two strong ones", etag, other)
	}
	for _, test := range []struct {
		target, line string
		status       int
	}{
		{"/v1/pets/1", "If-None-Match: " + etag, 304},
		{"/v1/pets/1", "If-None-Match: W/" + etag, 304}, // weak comparison
		{"/v1/pets/1", `If-None-Match: "x", W/"y" ,, ` + etag, 304},
		{"/v1/pets/1", "If-None-Match: \"x\"\r\nIf-None-Match: " + etag, 304},
		{"/v1/pets/1", `If-None-Match: "a,b"` + "," + etag, 304},
		{"/v1/pets/1", "If-None-Match: *", 304},
		{"/v1/pets", "If-None-Match: *", 304}, // there is a representation, if without an ETag
		{"/v1/usage", "If-None-Match: *", 304},
		{"/v1/pets/1", `If-None-Match: "x"`, 200},
		{"/v1/pets/1", "If-None-Match: " + strings.Trim(etag, `"`), 200},
		{"/v1/pets/1", "If-None-Match: w/" + etag, 200},
		{"/v1/pets/1", `If-None-Match: "`, 200},
		{"/v1/pets/1", "If-None-Match:", 200},
		{"/v1/pets/1", "If-Match: " + etag, 200},
		{"/v1/pets/1", `If-Match: "x", ` + etag, 200},
		{"/v1/pets/1", "If-Match: *", 200},
		{"/v1/pets", "If-Match: *", 200},
		{"/v1/pets/1", "If-Match: W/" + etag, 412}, // strong comparison
		{"/v1/pets/1", `If-Match: "x"`, 412},
		{"/v1/pets/1", "If-Match:", 412},
		{"/v1/pets", "If-Match: " + etag, 412},
		{"/v1/pets/1", "If-Match: \"x\"\r\nIf-None-Match: " + etag, 412},
		{"/v1/pets/1", "If-Match: " + etag + "\r\nIf-None-Match: " + etag, 304},
		{"/v1/pets/1", "If-Modified-Since: Sat, 01 Jan 2050 00:00:00 GMT", 200}, // there are no dates of modification
		{"/v1/pets/1", "If-Unmodified-Since: Sat, 01 Jan 2000 00:00:00 GMT", 200},
		{"/v1/pets/1", "Range: bytes=0-1", 200},
		{"/v1/pets/99", "If-None-Match: *", 404},
		{"/v1/pets?limit=x", "If-None-Match: *", 400},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			resp := s.Do(t, contract.Request{Method: method, Target: test.target, Header: []string{test.line}})
			if resp.StatusCode != test.status {
				t.Errorf("%s %s, %q: status %d, want %d", method, test.target, test.line, resp.StatusCode, test.status)
			}
			if got := resp.Header.Get("ETag"); test.target == "/v1/pets/1" && test.status < 400 && got != etag {
				t.Errorf("%s %s, %q: ETag is %s, want %s", method, test.target, test.line, got, etag)
			}
		}
	}
	for line, status := range map[string]int{
		`If-Match: "x"`: 412, "If-None-Match: *": 412, "If-Match: *": 201, `If-None-Match: "x"`: 201,
	} {
		if got := s.Post(t, "/v1/pets", `{"name":"x","categoryId":1}`, line); got.StatusCode != status {
			t.Errorf("POST with %s: status %d, want %d", line, got.StatusCode, status)
		}
	}
	if got := len(decode[[]wirePet](t, s.Get(t, "/v1/pets"))); got != 4 {
		t.Errorf("%d pets are stored, want 4: a false precondition performs nothing", got)
	}
}
