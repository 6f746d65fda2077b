package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/contract"
)

func TestBan(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.with(s.key(t, "pushy", "enterprise", "2/minute"))
	c.Get(t, "/v1/pets")
	c.Get(t, "/v1/pets")
	want(t, c.Get(t, "/v1/pets"), 429, "rate_limit_exceeded")
	s.clock.advance(3 * time.Second) // over the grace
	for range 10 {
		want(t, c.Get(t, "/v1/pets"), 429, "rate_limit_exceeded")
	}
	resp := c.Get(t, "/v1/pets")
	want(t, resp, 429, "api_key_banned")
	if got := resp.Int("Retry-After"); got != 60 {
		t.Errorf("Retry-After is %d, want the ban of 60 seconds", got)
	}
	s.clock.advance(59 * time.Second) // the minute is over, the ban is not
	want(t, c.Get(t, "/v1/pets"), 429, "api_key_banned")
	want(t, s.with(s.key(t, "pushy", "enterprise", "2/minute")).Get(t, "/v1/pets"), 429, "api_key_banned") // another key of the owner
	want(t, c.Get(t, "/openapi.yaml"), 429, "api_key_banned")

	usage := c.Get(t, "/v1/usage")
	want(t, usage, 200, "")
	if got, ends := decode[wireUsage](t, usage), s.clock.Now().Unix()+1; got.Ban == nil || got.Ban.Ends != ends {
		t.Errorf("GET /v1/usage during a ban says %s, want a ban to %d", usage.Data, ends)
	}
	s.clock.advance(time.Second)
	want(t, c.Get(t, "/v1/pets"), 200, "")
	if got := decode[wireUsage](t, c.Get(t, "/v1/usage")); got.Ban != nil {
		t.Errorf("GET /v1/usage after the ban has one to %d", got.Ban.Ends)
	}
}

type wireUsage struct {
	Plan   string
	Quotas []struct {
		Limit, WindowSeconds, Remaining, Reset int64
	}
	StrikesLeft *int
	Ban         *struct{ Ends int64 }
}

// Of a calendar window the length is that of the one that is open.
func TestUsageOfCalendar(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.with(s.key(t, "monthly", "enterprise", "60/day in Pacific/Auckland", "1000/month from 17"))
	c.Get(t, "/v1/pets")
	expected := fmt.Sprintf(`{"plan":"enterprise","quotas":[`+
		`{"limit":60,"windowSeconds":86400,"calendar":"day in Pacific/Auckland","remaining":59,"reset":%d},`+
		`{"limit":1000,"windowSeconds":2592000,"calendar":"month from 17","remaining":999,"reset":%d}],"strikesLeft":10}`+"\n",
		time.Date(2026, time.November, 21, 11, 0, 0, 0, time.UTC).Unix(),
		time.Date(2026, time.December, 17, 0, 0, 0, 0, time.UTC).Unix())
	if d := cmp.Diff(expected, string(c.Get(t, "/v1/usage").Data)); d != "" {
		t.Errorf("the body (-want +got):\n%s", d)
	}
}

// A smooth quota has no windows: its window is that of the limit, what remains is left of
// the burst, and the reset is when all of it is.
func TestUsageOfSmoothQuota(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.with(s.key(t, "smooth", "enterprise", "60/minute smooth 10", "1000/day"))
	resp := c.Get(t, "/v1/pets")
	if d := cmp.Diff(fields{10, 9, 6}, fieldsOf(resp)); d != "" {
		t.Errorf("the fields (-want +got):\n%s", d)
	}
	expected := fmt.Sprintf(`{"plan":"enterprise","quotas":[`+
		`{"limit":60,"windowSeconds":60,"burst":10,"remaining":9,"reset":%d},`+
		`{"limit":1000,"windowSeconds":86400,"remaining":999,"reset":%d}],"strikesLeft":10}`+"\n",
		time.Date(2026, time.November, 20, 12, 0, 6, 0, time.UTC).Unix(),
		time.Date(2026, time.November, 21, 0, 0, 0, 0, time.UTC).Unix())
	if d := cmp.Diff(expected, string(c.Get(t, "/v1/usage").Data)); d != "" {
		t.Errorf("the body (-want +got):\n%s", d)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.with(s.key(t, "curious", "free"))
	c.Get(t, "/v1/pets")
	resp := c.Get(t, "/v1/usage")
	minute := time.Date(2026, time.November, 20, 12, 1, 0, 0, time.UTC).Unix()
	day := time.Date(2026, time.November, 21, 0, 0, 0, 0, time.UTC).Unix()
	expected := fmt.Sprintf(`{"plan":"free","quotas":[`+
		`{"limit":60,"windowSeconds":60,"remaining":59,"reset":%d},`+
		`{"limit":1000,"windowSeconds":86400,"remaining":999,"reset":%d}],"strikesLeft":10}`+"\n", minute, day)
	if d := cmp.Diff(expected, string(resp.Data)); d != "" {
		t.Errorf("the body (-want +got):\n%s", d)
	}
	if d := cmp.Diff(fields{60, 59, 60}, fieldsOf(resp)); d != "" {
		t.Errorf("the fields (-want +got):\n%s", d)
	}
	for range 100 {
		want(t, c.Get(t, "/v1/usage"), 200, "")
	}
	if d := cmp.Diff(fields{60, 58, 60}, fieldsOf(c.Get(t, "/v1/pets"))); d != "" {
		t.Errorf("the fields after asking 100 times (-want +got):\n%s", d)
	}
}

// strikesLeft returns what GET /v1/usage says of them.
func strikesLeft(t *testing.T, c *contract.Client) int {
	t.Helper()
	u := decode[wireUsage](t, c.Get(t, "/v1/usage"))
	if u.StrikesLeft == nil {
		t.Fatal("GET /v1/usage has no strikesLeft")
	}
	return *u.StrikesLeft
}

// Strikes are forgotten as time passes, and GET /v1/usage says how many are left
// at the time of its response. A refused request says the same in its text.
func TestStrikesDecay(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.with(s.key(t, "pushy", "enterprise", "1/day"))
	c.Get(t, "/v1/pets")
	c.Get(t, "/v1/pets") // the first refusal, from which the grace counts
	s.clock.advance(3 * time.Second)
	for range 5 {
		want(t, c.Get(t, "/v1/pets"), 429, "rate_limit_exceeded")
	}
	for _, step := range []struct {
		pause time.Duration
		want  int
	}{{0, 5}, {9 * time.Second, 5}, {time.Second, 6}, {25 * time.Second, 8}, {time.Hour, 10}} {
		s.clock.advance(step.pause)
		if got := strikesLeft(t, c); got != step.want {
			t.Errorf("after another %v there are %d strikes left, want %d", step.pause, got, step.want)
		}
	}
	e, err := c.Get(t, "/v1/pets").Error()
	if err != nil || !strings.Contains(e.Message, "More than 9 further requests before then") {
		t.Errorf("after an hour a refusal says %q (%v), want 9 strikes left", e.Message, err)
	}
	if got := strikesLeft(t, c); got != 9 {
		t.Errorf("after that there are %d strikes left, want 9", got)
	}
	for range 100 {
		s.clock.advance(10 * time.Second)
		want(t, c.Get(t, "/v1/pets"), 429, "rate_limit_exceeded") // as often as a strike is forgotten
	}
}
