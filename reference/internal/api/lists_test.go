package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
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
		"20 by default":             {"/v1/pets", []int64{1, 20}, 20, true},
		"the smallest limit":        {"/v1/pets?limit=1", []int64{1, 1}, 1, true},
		"the largest limit":         {"/v1/pets?limit=100", []int64{1, 100}, 100, true},
		"a status":                  {"/v1/pets?status=sold&limit=39", []int64{3, 117}, 39, true},
		"an exact number of pets":   {"/v1/pets?status=sold&limit=40", []int64{3, 120}, 40, false},
		"encoded parameters":        {"/v1/pets?%6cimit=%33", []int64{1, 3}, 3, true},
		"unknown parameters":        {"/v1/pets?limit=2&page=7&Limit=9&statuses=x&x", []int64{1, 2}, 2, true},
		"an empty query":            {"/v1/pets?", []int64{1, 20}, 20, true},
		"separators without a pair": {"/v1/pets?&&limit=2&", []int64{1, 2}, 2, true},
		"a plus sign elsewhere":     {"/v1/pets?q=a+b&limit=2", []int64{1, 2}, 2, true},
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

func TestWalk(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	all := s.pets(t, 50)
	for _, filter := range []string{"", "available", "pending", "sold"} {
		for _, limit := range []int{1, 7, 50} {
			var walked []int64
			target := fmt.Sprintf("/v1/pets?limit=%d", limit)
			if filter != "" {
				target += "&status=" + filter
			}
			for pages := 0; target != ""; pages++ {
				if pages > len(all) {
					t.Fatalf("limit %d, status %q: the walk does not end", limit, filter)
				}
				resp := s.Get(t, target)
				pets := decode[[]wirePet](t, resp)
				if len(pets) > limit || len(pets) == 0 {
					t.Errorf("%s: %d pets, want 1 to %d: no page is empty", target, len(pets), limit)
				}
				for _, p := range pets {
					walked = append(walked, p.ID)
				}
				if target = next(t, resp); target == "" {
					continue
				}
				values := query(t, target)
				if values.Get("limit") != fmt.Sprint(limit) || values.Get("status") != filter {
					t.Errorf("the next page %s does not keep limit %d and status %q", target, limit, filter)
				}
			}
			var wanted []int64
			for _, p := range all {
				if filter == "" || string(p.Status) == filter {
					wanted = append(wanted, p.ID)
				}
			}
			if d := cmp.Diff(wanted, walked); d != "" {
				t.Errorf("limit %d, status %q: the walk (-want +got):\n%s", limit, filter, d)
			}
		}
	}
}

func query(t testing.TB, target string) url.Values {
	t.Helper()
	u, err := url.Parse(target)
	must(t, err)
	return u.Query()
}

func TestCursor(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 30)
	link := next(t, s.Get(t, "/v1/pets?status=sold&limit=2"))
	cursor := query(t, link).Get("cursor")

	t.Run("takes another limit", func(t *testing.T) {
		resp := s.Get(t, "/v1/pets?status=sold&limit=1&cursor="+cursor)
		if pets := decode[[]wirePet](t, resp); len(pets) != 1 || pets[0].ID != 9 {
			t.Errorf("the page is %s, want the pet 9", resp.Data)
		}
	})
	t.Run("goes with its filter only", func(t *testing.T) {
		want(t, s.Get(t, "/v1/pets?cursor="+cursor), 400, "invalid_parameter")
		want(t, s.Get(t, "/v1/pets?status=pending&cursor="+cursor), 400, "invalid_parameter")
	})
	t.Run("opens nothing without a key", func(t *testing.T) {
		want(t, s.Do(t, none(contract.Request{Target: link})), 401, "missing_api_key")
	})
}

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
		{"another coding", "/v1/pets?limit=100", "br", ""},
		{"a small list", "/v1/pets?limit=24", "gzip", ""},
		{"the smallest", "/v1/pets?limit=25", "gzip", "gzip"},
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
		{"/v1/pets?", 1},
		{"/v1/pets?limit=20&x=y", 1},
		{"/v1/pets?%6cimit=20", 1},
		{"/v1/pets?limit=21", 2},
		{"/v1/pets?status=sold", 3},
		{"/v1/pets?status=sold&limit=20", 3},
		{"/v1/pets?limit=x", 3},
	} {
		s.Get(t, test.target)
		s.Do(t, contract.Request{Method: "HEAD", Target: test.target})
		if n := counted.lists.Load(); n != test.reads {
			t.Errorf("after %s, %d lists were read, want %d", test.target, n, test.reads)
		}
	}
}
