package api_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/contract"
)

const acceptGzip = "Accept-Encoding: gzip"

// A list is compressed if the client accepts gzip and the list is large. The client of
// the tests checks Content-Length and Vary of each response, and decodes the body.
func TestListIsCompressed(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 100)
	plain := s.Get(t, "/v1/pets?limit=100")
	for _, test := range []struct {
		name, target, accept, coding string
	}{
		{"gzip", "/v1/pets?limit=100", "gzip", "gzip"},
		{"gzip among others", "/v1/pets?limit=100", "br, gzip;q=0.5", "gzip"},
		{"gzip of weight 0", "/v1/pets?limit=100", "gzip;q=0, *", ""},
		{"identity preferred", "/v1/pets?limit=100", "gzip;q=0.5, identity", ""},
		{"no preference", "/v1/pets?limit=100", "identity, gzip", "gzip"},
		{"another coding", "/v1/pets?limit=100", "br", ""},
		{"a small list", "/v1/pets?limit=5", "gzip", ""},
	} {
		full := s.Get(t, test.target, "Accept-Encoding: "+test.accept)
		want(t, full, 200, "")
		if got := full.Header.Get("Content-Encoding"); got != test.coding {
			t.Errorf("%s: Content-Encoding is %q, want %q", test.name, got, test.coding)
		}
		if test.target == "/v1/pets?limit=100" && string(full.Data) != string(plain.Data) {
			t.Errorf("%s: the decoded list is not the list without compression", test.name)
		}
		if test.coding != "" && 3*len(full.Encoded) > len(full.Data) {
			t.Errorf("%s: %d bytes of %d are left, want a third at most", test.name, len(full.Encoded), len(full.Data))
		}
		head := s.Do(t, contract.Request{Method: "HEAD", Target: test.target, Header: []string{"Accept-Encoding: " + test.accept}})
		for _, name := range []string{"Content-Encoding", "Content-Length", "Etag", "Vary", "Link"} {
			if d := cmp.Diff(full.Header.Values(name), head.Header.Values(name)); d != "" {
				t.Errorf("%s: %s of HEAD (-GET +HEAD):\n%s", test.name, name, d)
			}
		}
	}
}

// From the first size that is compressed on, the compressed list is smaller.
func TestSmallestCompressedList(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 40)
	compressed := 0
	for n := 1; n <= 40; n++ {
		resp := s.Get(t, "/v1/pets?limit="+strconv.Itoa(n), acceptGzip)
		if want := len(resp.Data) >= 1400; (resp.Encoded != nil) != want {
			t.Errorf("a list of %d bytes: compressed %t, want %t", len(resp.Data), resp.Encoded != nil, want)
		}
		if resp.Encoded != nil {
			compressed++
			if len(resp.Encoded) > len(resp.Data)/2 {
				t.Errorf("a list of %d bytes was compressed to %d, want half of it at most", len(resp.Data), len(resp.Encoded))
			}
		}
	}
	if compressed == 0 {
		t.Error("no list was large enough")
	}
}

func TestListHasAnETagForEachCoding(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 50)
	const target = "/v1/pets?limit=40"
	tags := make(map[string]string)
	for _, accept := range []string{"Accept-Encoding: identity", acceptGzip} {
		tags[accept] = s.Get(t, target, accept).Header.Get("ETag")
	}
	if len(tags) != 2 || tags[acceptGzip] == tags["Accept-Encoding: identity"] {
		t.Fatalf("the ETags are %q, want two", tags)
	}
	for accept, own := range tags {
		for _, other := range tags {
			status := map[bool]int{true: 304, false: 200}[other == own]
			for _, method := range []string{"GET", "HEAD"} {
				resp := s.Do(t, contract.Request{Method: method, Target: target, Header: []string{accept, "If-None-Match: " + other}})
				want(t, resp, status, "")
				if got := resp.Header.Get("ETag"); got != own {
					t.Errorf("%s, %s: ETag is %s, want %s", method, accept, got, own)
				}
				if resp.StatusCode == 304 && resp.Header.Get("Content-Encoding") != "" {
					t.Errorf("%s, %s: a 304 has Content-Encoding", method, accept)
				}
			}
		}
	}
	refused := s.Get(t, target, acceptGzip, `If-Match: "x"`)
	want(t, refused, http.StatusPreconditionFailed, "precondition_failed")
	if refused.Encoded != nil {
		t.Error("an error is compressed")
	}
}

// The ETag is that of the page, and of the link to the next one: a client that has all
// pets must notice a page that begins after its last one.
func TestETagOfListChanges(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 3)
	const target = "/v1/pets?limit=4"
	etag := func() string { return s.Get(t, target).Header.Get("ETag") }
	seen := []string{etag(), etag()}
	if seen[0] != seen[1] {
		t.Errorf("the ETags of one list are %q, want the same", seen)
	}
	for i, change := range []string{"another pet on the page", "a pet on the next page"} {
		s.pets(t, 1)
		want(t, s.Get(t, target, "If-None-Match: "+seen[i]), 200, "")
		if seen[i+1] = etag(); seen[i+1] == seen[i] {
			t.Errorf("%s: the ETag stays %s, want another one", change, seen[i])
		}
		seen = append(seen, seen[i+1])
	}
	s.pets(t, 1)
	want(t, s.Get(t, target, "If-None-Match: "+seen[2]), 304, "")
	if a, b := s.Get(t, "/v1/pets?limit=2").Header.Get("ETag"), s.Get(t, "/v1/pets?limit=3").Header.Get("ETag"); a == b {
		t.Errorf("the ETags of two lists are both %s", a)
	}
}

// A condition of POST is about the list that GET returns.
func TestConditionsOnCreate(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 50)
	etag := func(target string, header ...string) string { return s.Get(t, target, header...).Header.Get("ETag") }
	const large = "/v1/pets?limit=40"
	for _, test := range []struct {
		name, target string
		header       []string
		status       int
	}{
		{"the list is unchanged", "/v1/pets", []string{"If-Match: " + etag("/v1/pets")}, 201},
		{"and compressed", large, []string{acceptGzip, "If-Match: " + etag(large, acceptGzip)}, 201},
		{"in another coding", large, []string{acceptGzip, "If-Match: " + etag(large)}, 412},
		{"another list", "/v1/pets?limit=3", []string{"If-Match: " + etag("/v1/pets")}, 412},
		{"not if unchanged", "/v1/pets", []string{"If-None-Match: " + etag("/v1/pets")}, 412},
		{"no list", "/v1/pets?limit=x", []string{"If-Match: " + etag("/v1/pets")}, 412},
		{"no list, no condition", "/v1/pets?limit=x", nil, 201},
	} {
		resp := s.Post(t, test.target, `{"name":"x","categoryId":1}`, test.header...)
		if resp.StatusCode != test.status {
			t.Errorf("%s: status %d, want %d", test.name, resp.StatusCode, test.status)
		}
	}
}
