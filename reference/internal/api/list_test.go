package api_test

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/contract"
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
		for _, limit := range []int{1, 7, 10, 50} {
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
	if err != nil {
		t.Fatal(err)
	}
	return u.Query()
}

func TestWalkMeetsWhatIsAddedMeanwhileOnce(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 4)
	first := s.Get(t, "/v1/pets?limit=3")
	s.pets(t, 3)
	second := s.Get(t, next(t, first))
	var ids []int64
	for _, p := range slices.Concat(decode[[]wirePet](t, first), decode[[]wirePet](t, second)) {
		ids = append(ids, p.ID)
	}
	if d := cmp.Diff([]int64{1, 2, 3, 4, 5, 6}, ids); d != "" {
		t.Errorf("the pets of two pages (-want +got):\n%s", d)
	}
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
	t.Run("is refused with any octet changed", func(t *testing.T) {
		for i := range cursor {
			const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
			for j := 0; j < len(digits); j += []int{21, 1}[i/(len(cursor)-1)] { // all of them for the last, which has bits to spare
				c := digits[j]
				if changed := cursor[:i] + string(c) + cursor[i+1:]; changed != cursor {
					want(t, s.Get(t, "/v1/pets?status=sold&cursor="+changed), 400, "invalid_parameter")
				}
			}
		}
	})
	t.Run("is refused when cut off or longer", func(t *testing.T) {
		for i := range cursor {
			want(t, s.Get(t, "/v1/pets?status=sold&cursor="+cursor[:i]), 400, "invalid_parameter")
		}
		for _, more := range []string{"A", "=", "%0A", "%20"} {
			want(t, s.Get(t, "/v1/pets?status=sold&cursor="+cursor+more), 400, "invalid_parameter")
		}
	})
	t.Run("opens nothing without a key", func(t *testing.T) {
		want(t, s.Do(t, none(contract.Request{Target: link})), 401, "missing_api_key")
	})
}
