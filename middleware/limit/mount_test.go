package limit_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
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

// packageEngine is not on the heap.
var packageEngine struct {
	ratelimit.Limiter
	_ [32]byte
}

// A second limit without a name is refused with what to write, but only on the same engine.
func TestASecondLimitWithoutAName(t *testing.T) {
	identify := fixed(ratelimit.Caller{})
	l, other := atNow(), atNow()
	in := &struct{ a, b struct{ ratelimit.Limiter } }{}
	for _, step := range []struct {
		name    string
		engine  ratelimit.Limiter
		refused bool
	}{
		{"first", l, false},
		{"second", l, true},
		{"another engine", other, false},
		{"around the engine", &struct{ ratelimit.Limiter }{l}, false},
		{"a value, which is no one engine", struct{ *memory.Limiter }{l}, false},
		{"the same value", struct{ *memory.Limiter }{l}, false},
		{"without a size", &careless{}, false},
		{"another one without a size", &careless{}, false},
		{"of the package", &packageEngine, false},
		{"of the package again", &packageEngine, true},
		{"a field", &in.a, false},
		{"another field", &in.b, false},
		{"the first field again", &in.a, true},
		{"third", l, true},
	} {
		_, err := limit.New(step.engine, identify, limit.Options{})
		if step.refused != (err != nil) || err != nil && !strings.Contains(err.Error(), "Give this one a Name") {
			t.Errorf("%s: got error %v, refused must be %t", step.name, err, step.refused)
		}
	}
	for _, name := range []string{"a/b", "user:", "/", ":"} {
		if _, err := limit.New(l, identify, limit.Options{Name: name}); err == nil || !strings.Contains(err.Error(), "Options.Name must have no slash") {
			t.Errorf("Name %q: got error %v, want one about the Name", name, err)
		}
	}
	if i := slices.IndexFunc([]string{"é", "my search", "a-b"}, func(name string) bool {
		return second(limit.New(l, identify, limit.Options{Name: name})) != nil
	}); i >= 0 {
		t.Errorf("name %d is refused", i)
	}
}
