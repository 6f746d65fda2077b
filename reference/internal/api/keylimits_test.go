package api_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/contract"
)

// limitedKeys returns clients with two keys of an owner that may send ten requests a
// minute. The first key has limits of its own.
func limitedKeys(t *testing.T, s *service, limits ...string) (limited, other *contract.Client) {
	t.Helper()
	var clients [2]*contract.Client
	for i := range clients {
		secret := s.format.Generate()
		k := newKey("enterprise", "10/minute")
		if i == 0 {
			k.Limits = limits
		}
		s.issue(t, secret, k)
		clients[i] = s.with(secret.Reveal())
	}
	return clients[0], clients[1]
}

// quota returns the limit and what remains of it, as the header fields of resp say.
func quota(resp *contract.Response) string {
	return fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("X-RateLimit-Remaining"), "/", resp.Header.Get("X-RateLimit-Limit"))
}

// left returns what remains of each quota of the owner and then of the key, as getUsage
// says.
func left(t *testing.T, c *contract.Client) []int64 {
	t.Helper()
	usage := c.Get(t, "/v1/usage")
	if regexp.MustCompile(`"strikesLeft".*"keyQuotas"`).Match(usage.Data) {
		t.Errorf("the usage is %s, want its members in the order that they have always had", usage.Data)
	}
	body := decode[struct{ Quotas, KeyQuotas []struct{ Remaining int64 } }](t, usage)
	var all []int64
	for _, q := range append(body.Quotas, body.KeyQuotas...) {
		all = append(all, q.Remaining)
	}
	return all
}

func TestKeyHasLimitsOfItsOwn(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	limited, other := limitedKeys(t, s, "3/minute", "100/hour")
	for i := range 20 { // many more than the strikes that start a ban
		want := "429 0/3"
		if i < 3 {
			want = fmt.Sprintf("200 %d/3", 2-i)
		}
		if got := quota(limited.Get(t, "/v1/pets")); got != want {
			t.Errorf("request %d of a key with 3 a minute gets %s, want %s", i+1, got, want)
		}
	}
	const text = "This API key has reached the limit of 3 requests per minute."
	if resp := limited.Get(t, "/v1/pets"); !strings.Contains(string(resp.Data), text) {
		t.Errorf("the key's own limit refuses a request with %s, want %s", resp.Data, text)
	}
	// What was refused is charged to neither.
	if d := cmp.Diff([]int64{7, 0, 97}, left(t, limited)); d != "" {
		t.Errorf("left of the owner and the key (-want +got):\n%s", d)
	}
	if got := quota(limited.Get(t, "/v1/usage")); got != "200 0/3" {
		t.Errorf("the fields of getUsage say %s, want those of the key, which has less left", got)
	}
	if got := quota(other.Get(t, "/v1/pets")); got != "200 6/10" {
		t.Errorf("the other key gets %s, want 200 6/10", got)
	}
	if d := cmp.Diff([]int64{6}, left(t, other)); d != "" {
		t.Errorf("left of the owner (-want +got):\n%s", d)
	}
}

// What the key has used up does not hide a ban of the owner, nor a quota of the owner
// that takes longer.
func TestKeyAndOwnerHaveNothingLeft(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, limit string
		ban         time.Duration
		code, wait  string
	}{
		{"the owner is banned for longer", "1/minute", time.Hour, "api_key_banned", "3600"},
		{"the owner is banned for less", "1/day", time.Hour, "api_key_banned", "3600"},
		{"the owner's window ends later", "1/minute", 0, "rate_limit_exceeded", "3595"}, // it is 12:00:05
		{"the key's window ends later", "1/day", 0, "rate_limit_exceeded", "43195"},
	} {
		s := start(t, nil)
		secret := s.format.Generate()
		k := newKey("enterprise", "1/hour")
		k.Limits = []string{test.limit}
		s.issue(t, secret, k)
		limited := s.with(secret.Reveal())
		want(t, limited.Get(t, "/v1/pets"), 200, "")
		if test.ban > 0 {
			must(t, s.limits.Ban(t.Context(), "owner:"+k.Owner, test.ban, ""))
		}
		var reset string
		for range 2 {
			resp := limited.Get(t, "/v1/pets")
			reset = resp.Header.Get("X-RateLimit-Reset")
			if got := resp.Header.Get("Retry-After"); resp.StatusCode != 429 || resp.Code() != test.code || got != test.wait {
				t.Errorf("%s: %d %s, Retry-After %s, want 429 %s, Retry-After %s", test.name, resp.StatusCode, resp.Code(), got, test.code, test.wait)
			}
		}
		if got := limited.Get(t, "/v1/usage").Header.Get("X-RateLimit-Reset"); got != reset {
			t.Errorf("%s: getUsage says that the limit resets at %s, the denials say %s", test.name, got, reset)
		}
	}
}

// A request is counted for its owner, also if the limits of the key decide.
func TestKeyWithLimitsCountsForItsOwner(t *testing.T) {
	t.Parallel()
	for name, plan := range map[string]func(*api.Config){
		"pro":      withPlan(ratelimit.MustPlan("pro", ratelimit.Penalty{}, ratelimit.PerMinute(60))),
		"internal": withPlan(ratelimit.UnlimitedPlan("internal")),
	} {
		var seen decisions
		s := start(t, func(c *api.Config) {
			plan(c)
			c.OnDecision = seen.add
		})
		limited, _ := limitedKeys(t, s, "1/minute")
		for range 2 {
			limited.Get(t, "/v1/pets")
		}
		for range 2 { // more than the key may send of what is charged
			if got := left(t, limited); len(got) == 0 || got[len(got)-1] != 0 {
				t.Errorf("%s: left of the owner and the key is %d, want nothing of the key", name, got)
			}
		}
		want := []string{"GET owner:somebody allowed failed=false", "GET owner:somebody limited failed=false"}
		if d := cmp.Diff(want, seen.take()); d != "" {
			t.Errorf("%s: OnDecision was called (-want +got):\n%s", name, d)
		}
		if text, _ := s.logged(t); strings.Count(text, `"plan":"`+name+`"`) != 4 {
			t.Errorf("the log is %s, want the plan %s four times", text, name)
		}
	}
}
