package api_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/contract"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

var nextLink = regexp.MustCompile(`<([^>]*)>; rel="next"`)

// next returns the target of the link to the next page, or "".
func next(t testing.TB, resp *contract.Response) string {
	t.Helper()
	if found := nextLink.FindStringSubmatch(resp.Header.Get("Link")); found != nil {
		return found[1]
	}
	return ""
}

func TestListPets(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	if resp := s.Get(t, "/v1/pets"); string(resp.Data) != "[]\n" || next(t, resp) != "" {
		t.Errorf("the list of no pets is %q with the next page %q, want [] and none", resp.Data, next(t, resp))
	}
	s.pets(t, 120)
	tests := map[string]struct {
		target string
		ids    []int64 // first and last
		count  int
		more   bool
	}{
		"20 by default":           {"/v1/pets", []int64{1, 20}, 20, true},
		"the largest limit":       {"/v1/pets?limit=100", []int64{1, 100}, 100, true},
		"a status":                {"/v1/pets?status=sold&limit=39", []int64{3, 117}, 39, true},
		"an exact number of pets": {"/v1/pets?status=sold&limit=40", []int64{3, 120}, 40, false},
		"encoded parameters":      {"/v1/pets?%6cimit=%33", []int64{1, 3}, 3, true},
		"unknown parameters":      {"/v1/pets?limit=2&page=7&Limit=9&statuses=x&x", []int64{1, 2}, 2, true},
	}
	for name, test := range tests {
		resp := s.Get(t, test.target)
		want(t, resp, 200, "")
		pets := decode[[]wirePet](t, resp)
		if len(pets) != test.count || pets[0].ID != test.ids[0] || pets[len(pets)-1].ID != test.ids[1] {
			t.Errorf("%s: %d pets, %s, want %d from %d to %d", name, len(pets), resp.Data, test.count, test.ids[0], test.ids[1])
		}
		if more := next(t, resp) != ""; more != test.more {
			t.Errorf("%s: there is a next page: %t, want %t", name, more, test.more)
		}
	}
}

func TestListPetsRefuses(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 3)
	for _, query := range []string{
		"limit=abc", "limit=", "limit", "limit=0", "limit=-1", "limit=101", "limit=1.0", "limit=1e1", "limit=0x10",
		"limit=%205", "limit=+5", "limit=%2B5", "limit=5%20", "limit=%D9%A5", "limit=05", "limit=" + strings.Repeat("9", 30),
		"limit=18446744073709551617", "limit=5&limit=5", "limit=5&limit=50", "limit=%zz", "limit=%", "limit=1;status=sold",
		"limit=5%00", "limit=%FF", "limit[]=5", "limit=null", "limit=5&%6cimit=6",
		"status=", "status", "status=Sold", "status=sold,pending", "status=sold&status=pending", "status=sold&status=sold",
		"status[]=sold", "status[0]=sold", "status=lost", "status=sold%00", "status=%FF", "status=sold%20", "status=*",
		"cursor=", "cursor=x", "cursor=&cursor=", "cursor=" + strings.Repeat("A", 19), "cursor=" + strings.Repeat("_", 5000),
		"x=%FF", "x=%00", "%FF=x", "x=%", "x;y",
	} {
		want(t, s.Get(t, "/v1/pets?"+query), 400, "invalid_parameter")
	}
}

// The links lead through all pets of a filter, in as few pages as the limit allows.
func TestWalk(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	all := s.pets(t, 50)
	for _, filter := range []store.Status{"", store.Available, store.Pending, store.Sold} {
		var wanted []int64
		for _, p := range all {
			if filter == "" || p.Status == filter {
				wanted = append(wanted, p.ID)
			}
		}
		for _, limit := range []int{1, 7, 50} {
			target := fmt.Sprint("/v1/pets?limit=", limit)
			if filter != "" {
				target += "&status=" + string(filter)
			}
			var walked []int64
			pages := 0
			for ; target != "" && pages <= len(all); pages++ {
				resp := s.Get(t, target)
				for _, p := range decode[[]wirePet](t, resp) {
					walked = append(walked, p.ID)
				}
				target = next(t, resp)
			}
			if d := cmp.Diff(wanted, walked); d != "" || pages != (len(wanted)+limit-1)/limit {
				t.Errorf("limit %d, status %q: the walk has %d pages (-want +got):\n%s", limit, filter, pages, d)
			}
		}
	}
}

// A cursor takes another limit, but goes with its filter only, and opens nothing without a
// key.
func TestCursor(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 30)
	link := next(t, s.Get(t, "/v1/pets?status=sold&limit=2"))
	_, cursor, _ := strings.Cut(link, "cursor=")
	cursor, _, _ = strings.Cut(cursor, "&")
	resp := s.Get(t, "/v1/pets?status=sold&limit=1&cursor="+cursor)
	if pets := decode[[]wirePet](t, resp); len(pets) != 1 || pets[0].ID != 9 {
		t.Errorf("the page is %s, want the pet 9", resp.Data)
	}
	want(t, s.Get(t, "/v1/pets?cursor="+cursor), 400, "invalid_parameter")
	want(t, s.Get(t, "/v1/pets?status=pending&cursor="+cursor), 400, "invalid_parameter")
	want(t, s.Do(t, none(contract.Request{Target: link})), 401, "missing_api_key")
}

// A list is compressed if the client accepts gzip and the list is large, and then has an
// ETag of its own. The client of the tests checks Content-Length and Vary of each
// response, and decodes the body.
func TestListIsCompressed(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 100)
	for target, compressed := range map[string]bool{"/v1/pets?limit=24": false, "/v1/pets?limit=25": true, "/v1/pets?limit=100": true} {
		plain, zipped := s.Get(t, target, "Accept-Encoding: br"), s.Get(t, target, "Accept-Encoding: gzip")
		tags := []string{plain.Header.Get("ETag"), zipped.Header.Get("ETag")}
		if plain.Encoded != nil || (zipped.Encoded != nil) != compressed || string(zipped.Data) != string(plain.Data) {
			t.Errorf("%s: compressed: %t, and %t without gzip, want %t and never, of the same list", target, zipped.Encoded != nil, plain.Encoded != nil, compressed)
		}
		if compressed && 3*len(zipped.Encoded) > len(plain.Data) {
			t.Errorf("%s: %d bytes of %d are left, want a third at most", target, len(zipped.Encoded), len(plain.Data))
		}
		if (tags[0] != tags[1]) != compressed {
			t.Errorf("%s: the ETags are %q, want one of each form", target, tags)
		}
		for i, accept := range []string{"br", "gzip"} {
			for _, tag := range tags {
				resp := s.Get(t, target, "Accept-Encoding: "+accept, "If-None-Match: "+tag)
				want(t, resp, map[bool]int{true: 304, false: 200}[tag == tags[i]], "")
				if got := resp.Header.Get("ETag"); got != tags[i] || resp.StatusCode == 304 && resp.Header.Get("Content-Encoding") != "" {
					t.Errorf("%s, %s: the fields of a %d are %v, want the ETag %s, and no coding of a 304", target, accept, resp.StatusCode, resp.Header, tags[i])
				}
			}
		}
	}
	refused := s.Get(t, "/v1/pets?limit=100", "Accept-Encoding: gzip", `If-Match: "x"`)
	want(t, refused, 412, "precondition_failed")
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
	etag := s.Get(t, target).Header.Get("ETag")
	for _, step := range []struct {
		change string
		pets   int
		status int
	}{
		{"nothing", 0, 304},
		{"another pet on the page", 1, 200},
		{"a pet on the next page", 1, 200},
		{"another pet on the next page", 1, 304},
	} {
		s.pets(t, step.pets)
		resp := s.Get(t, target, "If-None-Match: "+etag)
		want(t, resp, step.status, "")
		if got := resp.Header.Get("ETag"); (got == etag) != (step.status == 304) {
			t.Errorf("%s: the ETag is %s after %s, want another one with 200 alone", step.change, got, etag)
		}
		etag = resp.Header.Get("ETag")
	}
}

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
		{"/v1/pets/1", "If-None-Match: *", 304},
		{"/v1/pets", "If-None-Match: *", 304}, // there is a representation, if without an ETag
		{"/v1/usage", "If-None-Match: *", 304},
		{"/v1/pets/1", `If-None-Match: "x"`, 200},
		{"/v1/pets/1", "If-None-Match: " + strings.Trim(etag, `"`), 200},
		{"/v1/pets/1", "If-Match: " + etag, 200},
		{"/v1/pets/1", `If-Match: "x", ` + etag, 200},
		{"/v1/pets/1", "If-Match: *", 200},
		{"/v1/pets/1", "If-Match: W/" + etag, 412}, // strong comparison
		{"/v1/pets/1", `If-Match: "x"`, 412},
		{"/v1/pets", "If-Match: " + etag, 412},
		{"/v1/pets/1", "If-Match: \"x\"\r\nIf-None-Match: " + etag, 412},
		{"/v1/pets/1", "If-Match: " + etag + "\r\nIf-None-Match: " + etag, 304},
		{"/v1/pets/1", "If-Modified-Since: Sat, 01 Jan 2050 00:00:00 GMT", 200}, // there are no dates of modification
		{"/v1/pets/99", "If-None-Match: *", 404},
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
	for _, line := range []string{`If-Match: "x"`, "If-Match: *", "If-Match: " + s.Get(t, "/v1/pets").Header.Get("ETag"), "If-None-Match: *", `If-None-Match: "x"`} {
		want(t, s.Post(t, "/v1/pets", duke, line), 412, "precondition_failed")
	}
	if n := s.stored(t); n != 2 {
		t.Errorf("%d pets are stored, want the 2 of before: a POST with a precondition adds nothing", n)
	}
}

// countingStore counts the lists that are read, and has a version if the store has.
type countingStore struct {
	*sqlite.Store
	lists atomic.Int64
}

func (s *countingStore) ListPets(ctx context.Context, q store.ListQuery) ([]store.Pet, bool, error) {
	s.lists.Add(1)
	return s.Store.ListPets(ctx, q)
}

// A list is read once however its query is written, and again for another query.
func TestListIsReadOncePerQuery(t *testing.T) {
	t.Parallel()
	var counted *countingStore
	s := start(t, func(c *api.Config) {
		counted = &countingStore{Store: c.Pets.(*sqlite.Store)}
		c.Pets = counted
	})
	s.pets(t, 30)
	for _, test := range []struct {
		target string
		reads  int64
	}{
		{"/v1/pets", 1},
		{"/v1/pets?%6cimit=20", 1},
		{"/v1/pets?limit=21", 2},
		{"/v1/pets?status=sold", 3},
	} {
		s.Get(t, test.target)
		s.Do(t, contract.Request{Method: "HEAD", Target: test.target})
		if n := counted.lists.Load(); n != test.reads {
			t.Errorf("after %s, %d lists were read, want %d", test.target, n, test.reads)
		}
	}
}
