package limit_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// fixed returns an identify function for one caller.
func fixed(c ratelimit.Caller) func(*http.Request) (ratelimit.Caller, error) {
	return func(*http.Request) (ratelimit.Caller, error) { return c, nil }
}

// Limits on one engine count and ban apart by their names, with all subjects. Those with one
// name share.
func TestLimitsOnOneEngine(t *testing.T) {
	p := ratelimit.Penalty{Strikes: 1, Ban: time.Hour, Growth: 1, Max: time.Hour, Forgive: time.Hour}
	plan := ratelimit.MustPlan("p", p, ratelimit.PerDay(2))
	also := []ratelimit.Charge{{Subject: "org:1", Plan: ratelimit.MustPlan("org", ratelimit.Penalty{}, ratelimit.PerDay(9))}}
	caller := ratelimit.Caller{Subject: "user:ann", Plan: plan, Also: also}
	l := atNow()
	var observed []string
	on := func(name string) http.Handler {
		return must(limit.New(l, fixed(caller), limit.Options{
			Name: name, Errors: quiet,
			Observe: func(_ *http.Request, c ratelimit.Caller, _ ratelimit.Decision, _ error) {
				observed = append(observed, c.Subject)
			},
		}))(http.HandlerFunc(ok))
	}
	items, search, again := on(""), on("search"), on("search")
	expect(t, get(search), 200, "", "1")
	expect(t, get(again), 200, "", "0")
	expect(t, get(items), 200, "", "1")
	expect(t, get(search), 429, "rate_limit_exceeded", "0")
	expect(t, get(again), 429, "client_banned", "0")
	expect(t, get(items), 200, "", "0")
	bans := must(l.Bans(t.Context()))
	if len(bans) != 1 || bans[0].Subject != "search/"+limit.UserSubject("ann") {
		t.Errorf("banned are %v, want search/user:ann alone", bans)
	}
	want := []string{"search/user:ann", "search/user:ann", "user:ann", "search/user:ann", "search/user:ann", "user:ann"}
	if diff := cmp.Diff(want, observed); diff != "" {
		t.Errorf("observed subjects (-want +got):\n%s", diff)
	}
	for subject, want := range map[string]int64{"org:1": 2, "search/org:1": 2} {
		if got := used(t, l, subject)[1]; got != want {
			t.Errorf("%s has used %d, want %d", subject, got, want)
		}
	}
	if also[0].Subject != "org:1" {
		t.Errorf("the charge of identify became that of %q", also[0].Subject)
	}
	for _, c := range []ratelimit.Caller{{Plan: plan}, {Subject: "a", Plan: plan, Also: []ratelimit.Charge{{Plan: plan}}}} {
		w := get(must(limit.New(l, fixed(c), limit.Options{Name: "search", Errors: quiet}))(http.HandlerFunc(ok)))
		expect(t, w, 500, "internal", "0")
	}
}

// logged returns the warnings of this package about what do does.
func logged(do func()) string {
	var log bytes.Buffer
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	do()
	return log.String()
}

// A process that makes a limit for each request counts nothing, which the log says once.
func TestALimitForEachRequest(t *testing.T) {
	limit.ForgetMade()
	log := logged(func() {
		for range 3000 {
			limit.ByIP(ratelimit.PerMinute(1))
		}
	})
	if n := strings.Count(log, "Make an engine and its limit once"); n != 1 {
		t.Errorf("%d warnings, want 1:\n%s", n, log)
	}
}
