package api_test

import (
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/contract"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// fields are the three header fields of a limit; reset counts from the minute in
// which the clock of the tests starts.
type fields struct{ Limit, Remaining, Reset int64 }

func fieldsOf(resp *contract.Response) fields {
	minute := time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC).Unix()
	return fields{resp.Int("X-RateLimit-Limit"), resp.Int("X-RateLimit-Remaining"), resp.Int("X-RateLimit-Reset") - minute}
}

func TestPlans(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const midnight = 12 * 60 * 60
	for _, test := range []struct {
		plan   string
		quotas []string
		want   fields
	}{
		{"free", nil, fields{60, 59, 60}},
		{"pro", nil, fields{300, 299, 60}},
		{"business", nil, fields{1000, 999, 60}},
		{"enterprise", []string{"5000/minute", "4000/day"}, fields{4000, 3999, midnight}},
	} {
		c := s.with(s.key(t, "owner of "+test.plan, test.plan, test.quotas...))
		if d := cmp.Diff(test.want, fieldsOf(c.Get(t, "/v1/pets"))); d != "" {
			t.Errorf("plan %s, the first request (-want +got):\n%s", test.plan, d)
		}
	}
}

func TestQuota(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.with(s.key(t, "small", "enterprise", "3/minute", "5/day"))
	get := func(status int, want fields) *contract.Response {
		t.Helper()
		resp := c.Get(t, "/v1/pets")
		if resp.StatusCode != status {
			t.Errorf("status %d, want %d", resp.StatusCode, status)
		}
		if d := cmp.Diff(want, fieldsOf(resp)); d != "" {
			t.Errorf("the fields (-want +got):\n%s", d)
		}
		return resp
	}
	const midnight = 12 * 60 * 60
	get(200, fields{3, 2, 60})
	get(200, fields{3, 1, 60})
	get(200, fields{3, 0, 60})
	resp := get(429, fields{3, 0, 60})
	if got := resp.Int("Retry-After"); got != 55 {
		t.Errorf("Retry-After is %d, want the 55 seconds to the end of the minute", got)
	}
	s.clock.advance(55 * time.Second)
	get(200, fields{5, 1, midnight})
	get(200, fields{5, 0, midnight})
	resp = get(429, fields{5, 0, midnight}) // the minute is not used up, the day is
	s.clock.advance(time.Duration(resp.Int("Retry-After")) * time.Second)
	get(200, fields{3, 2, midnight + 60})
}

func TestQuotaIsThatOfTheOwner(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	first := s.with(s.key(t, "shared", "enterprise", "2/minute"))
	second := s.with(s.key(t, "shared", "enterprise", "2/minute"))
	other := s.with(s.key(t, "other", "enterprise", "2/minute"))
	want(t, first.Get(t, "/v1/pets"), 200, "")
	want(t, second.Get(t, "/v1/pets"), 200, "")
	want(t, first.Get(t, "/v1/pets"), 429, "rate_limit_exceeded")
	want(t, second.Get(t, "/v1/pets"), 429, "rate_limit_exceeded")
	want(t, other.Get(t, "/v1/pets"), 200, "")
}

func TestParallelRequestsAdmitTheLimitExactly(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.with(s.key(t, "small", "enterprise", "10/minute"))
	var wg sync.WaitGroup
	statuses := make(chan int, 60)
	for range cap(statuses) {
		wg.Go(func() {
			statuses <- c.Post(t, "/v1/pets", `{"name":"x","categoryId":1}`).StatusCode
		})
	}
	wg.Wait()
	close(statuses)
	got := make(map[int]int)
	for status := range statuses {
		got[status]++
	}
	if d := cmp.Diff(map[int]int{201: 10, 429: 50}, got); d != "" {
		t.Errorf("answers to 60 requests at once against 10 a minute (-want +got):\n%s", d)
	}
	pets, _, err := s.db.ListPets(t.Context(), store.ListQuery{Limit: 100})
	if err != nil || len(pets) != 10 {
		t.Errorf("%d pets are stored (%v), want 10: a 429 has no effect", len(pets), err)
	}
}

// Callers without a valid key are counted by their network, and never against
// anybody's key.
func TestAnonymousCallers(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *api.Config) {
		c.Anonymous = ratelimit.MustPlan("anonymous", ratelimit.DefaultPenalty(), ratelimit.PerMinute(5))
	})
	key := s.key(t, "small", "enterprise", "2/minute")
	wrong := s.format.Generate().Reveal()
	for i, target := range []string{"/v1/pets", "/v1/pets/1", "/v1/usage", "/v1/nothing", "/nothing"} {
		resp := s.Do(t, contract.Request{Target: target, Key: []*string{new(string), &wrong}[i%2]})
		if d := cmp.Diff(fields{5, int64(4 - i), 60}, fieldsOf(resp)); d != "" {
			t.Errorf("%s: the fields (-want +got):\n%s", target, d)
		}
	}
	want(t, s.Do(t, none(contract.Request{Target: "/v1/pets"})), 429, "rate_limit_exceeded")
	s.clock.advance(3 * time.Second)
	for range 10 {
		want(t, s.Do(t, none(contract.Request{Target: "/v1/usage"})), 429, "rate_limit_exceeded")
	}
	want(t, s.Do(t, contract.Request{Target: "/v1/pets", Key: &wrong}), 429, "client_banned")

	resp := s.with(key).Get(t, "/v1/pets")
	want(t, resp, 200, "") // a valid key from the same network
	if d := cmp.Diff(fields{2, 1, 60}, fieldsOf(resp)); d != "" {
		t.Errorf("the fields of a valid key (-want +got):\n%s", d)
	}
	resp = s.Do(t, none(contract.Request{Target: "/v1/pets", Header: []string{"X-Forwarded-For: 192.0.2.1", "Forwarded: for=192.0.2.1"}}))
	want(t, resp, 429, "client_banned") // nobody but a trusted proxy says who a client is
}

func TestNetworksBehindATrustedProxy(t *testing.T) {
	t.Parallel()
	client, err := clientip.FromXForwardedFor([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, func(c *api.Config) {
		c.Client = client
		c.Anonymous = ratelimit.MustPlan("anonymous", ratelimit.Penalty{}, ratelimit.PerMinute(2))
	})
	remaining := func(forwarded string) int64 {
		t.Helper()
		return s.Do(t, none(contract.Request{Target: "/v1/pets", Header: []string{"X-Forwarded-For: " + forwarded}})).Int("X-RateLimit-Remaining")
	}
	for _, step := range []struct {
		forwarded string
		want      int64
	}{
		{"192.0.2.1", 1},
		{"192.0.2.2", 1},
		{"192.0.2.2, 192.0.2.1", 0},
		{"2001:db8::1", 1},
		{"2001:db8::ffff:1", 0}, // the same /64
		{"2001:db8:0:1::1", 1},
	} {
		if got := remaining(step.forwarded); got != step.want {
			t.Errorf("X-Forwarded-For: %s: %d remain, want %d", step.forwarded, got, step.want)
		}
	}
}

func TestAPlanThatChangesKeepsItsUsage(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	small := s.with(s.key(t, "growing", "free"))
	for range 10 {
		small.Get(t, "/v1/pets")
	}
	large := s.with(s.key(t, "growing", "pro"))
	if d := cmp.Diff(fields{300, 289, 60}, fieldsOf(large.Get(t, "/v1/pets"))); d != "" {
		t.Errorf("the first request under the new plan (-want +got):\n%s", d)
	}
}

func TestDraftHeaders(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *api.Config) { c.Headers = limit.XRateLimit | limit.DraftRateLimit })
	c := s.with(s.key(t, "modern", "free"))
	for _, target := range []string{"/v1/pets", "/v1/usage"} {
		resp := c.Get(t, target)
		if got := resp.Header.Get("RateLimit-Policy"); got != `"minute";q=60;w=60, "day";q=1000;w=86400` {
			t.Errorf("%s: RateLimit-Policy is %s", target, got)
		}
		if got := resp.Header.Get("RateLimit"); got != `"minute";r=59;t=55, "day";r=999;t=43195` {
			t.Errorf("%s: RateLimit is %s", target, got)
		}
	}
	off := start(t, nil).Get(t, "/v1/pets")
	for name := range off.Header {
		if strings.HasPrefix(strings.ToLower(name), "ratelimit") {
			t.Errorf("there is %s, which is off by default", name)
		}
	}
}
