package limit_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// at returns the options of an engine whose clock stands at t.
func at(t time.Time) memory.Options { return memory.Options{Now: func() time.Time { return t }} }

var noon = at(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))

// must returns v. It panics if what is set up fails.
func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

func hello(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }

// show sends a request to h and prints the response.
func show(h http.Handler, path string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	fmt.Printf("%s: %d, remaining %q\n", path, w.Code, w.Header().Get("X-RateLimit-Remaining"))
}

// An export costs as much as twenty other requests.
func ExampleOptions_cost() {
	plan := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(30))
	limiter := must(memory.New(noon))
	limited := must(limit.New(limiter, func(r *http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: "owner:17", Plan: plan}, nil
	}, limit.Options{
		Cost: func(r *http.Request) int64 {
			switch r.URL.Path { // no ServeMux has matched the request yet
			case "/export":
				return 20
			case "/archive":
				return 50 // more than the plan allows in any minute
			}
			return 1
		},
	}))
	api := limited(http.HandlerFunc(hello))
	show(api, "/export")
	show(api, "/export")
	show(api, "/notes")
	show(api, "/archive")
	// Output:
	// /export: 200, remaining "10"
	// /export: 429, remaining "10"
	// /notes: 200, remaining "9"
	// /archive: 400, remaining "9"
}

// A service counts what becomes of its requests.
func ExampleOptions_observe() {
	plan := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(2))
	limiter := must(memory.New(noon))
	requests := map[string]int{} // a counter with labels; one that is safe for concurrent use
	limited := must(limit.New(limiter, func(r *http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: "owner:17", Plan: plan}, nil
	}, limit.Options{
		Cost: func(r *http.Request) int64 {
			if r.URL.Path == "/export" {
				return 20
			}
			return 1
		},
		Observe: func(r *http.Request, c ratelimit.Caller, d ratelimit.Decision, err error) {
			switch {
			case errors.Is(err, ratelimit.ErrInvalid): // as answered with 400 or 500
				requests["invalid"]++
			case err != nil: // no decision: Options.FailOpen
				requests["undecided"]++
			default:
				requests[c.Plan.Name()+" "+d.Outcome.String()]++
			}
		},
	}))
	api := limited(http.HandlerFunc(hello))
	for _, path := range []string{"/notes", "/notes", "/notes", "/export"} {
		show(api, path)
	}
	for _, label := range slices.Sorted(maps.Keys(requests)) {
		fmt.Println(label, requests[label])
	}
	// Output:
	// /notes: 200, remaining "1"
	// /notes: 200, remaining "0"
	// /notes: 429, remaining "0"
	// /export: 400, remaining "0"
	// free allowed 2
	// free limited 1
	// invalid 1
}

// A smaller plan is tried before it is in force: it refuses nothing, and says how
// many requests it would refuse.
func ExampleOptions_shadow() {
	free := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60))
	smaller := ratelimit.MustPlan("free-2027", ratelimit.DefaultPenalty(), ratelimit.PerMinute(2))
	limiter := must(memory.New(noon))
	identify := func(r *http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: "owner:17", Plan: free}, nil
	}
	limited := must(limit.New(limiter, identify, limit.Options{}))
	refused := 0
	try := must(limit.New(limiter, func(r *http.Request) (ratelimit.Caller, error) {
		c, err := identify(r)
		c.Plan = smaller
		return c, err
	}, limit.Options{
		Name:   "trial", // so that it counts apart from the limit in force
		Shadow: true,
		Observe: func(_ *http.Request, _ ratelimit.Caller, d ratelimit.Decision, err error) {
			// A request that costs more than the plan allows is an error.
			if errors.Is(err, ratelimit.ErrCostExceedsLimit) || err == nil && !d.Allowed() {
				refused++
			}
		},
	}))
	api := limited(try(http.HandlerFunc(hello))) // inside, it sees only what is admitted
	for range 4 {
		show(api, "/notes")
	}
	fmt.Println("the smaller plan would refuse", refused)
	// Output:
	// /notes: 200, remaining "59"
	// /notes: 200, remaining "58"
	// /notes: 200, remaining "57"
	// /notes: 200, remaining "56"
	// the smaller plan would refuse 2
}

// A page on which callers see their usage asks without being charged.
func Example_peek() {
	plan := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60), ratelimit.PerDay(1000))
	limiter := must(memory.New(noon))
	must(limiter.Take(context.Background(), "owner:17", plan, 20))
	d := must(limiter.Peek(context.Background(), "owner:17", plan))
	for i, q := range plan.Quotas() {
		fmt.Printf("%v: %d left until %v\n", q, d.States[i].Remaining, time.Unix(d.States[i].Reset, 0).UTC().Format(time.TimeOnly))
	}
	// Output:
	// 60/minute: 40 left until 12:01:00
	// 1000/day: 980 left until 00:00:00
}

// A request counts for a user, for the user's organisation and for everybody, and a search for
// the user once more. A request that one of them refuses is charged to none. A ban of a shared
// subject would deny the requests of many users, so that only the plan of a user has a penalty.
func Example_also() {
	user := ratelimit.MustPlan("user", ratelimit.DefaultPenalty(), ratelimit.PerMinute(3))
	search := ratelimit.MustPlan("search", ratelimit.Penalty{}, ratelimit.PerMinute(1))
	organisation := ratelimit.MustPlan("organisation", ratelimit.Penalty{}, ratelimit.PerMinute(4)).WithScope("organisation") // whose limit is reached
	everybody := ratelimit.MustPlan("everybody", ratelimit.Penalty{}, ratelimit.PerSecond(1000)).WithScope("service")
	limiter := must(memory.New(noon))
	limited := must(limit.New(limiter, func(r *http.Request) (ratelimit.Caller, error) {
		name := r.FormValue("user")
		c := ratelimit.Caller{Subject: "user:" + name, Plan: user}
		if r.URL.Path == "/search" { // a subject of its own: usage belongs to a subject
			c.Also = append(c.Also, ratelimit.Charge{Subject: "search:" + name, Plan: search})
		}
		c.Also = append(c.Also,
			ratelimit.Charge{Subject: "organisation:7", Plan: organisation},
			ratelimit.Charge{Subject: "everybody", Plan: everybody}) // the one that most requests share is last
		return c, nil
	}, limit.Options{}))
	api := limited(http.HandlerFunc(hello))
	for _, path := range []string{"/search?user=ann", "/search?user=ann", "/?user=ann", "/?user=ann", "/?user=ann", "/?user=bob", "/?user=bob"} {
		show(api, path)
	}
	// Output:
	// /search?user=ann: 200, remaining "0"
	// /search?user=ann: 429, remaining "0"
	// /?user=ann: 200, remaining "1"
	// /?user=ann: 200, remaining "0"
	// /?user=ann: 429, remaining "0"
	// /?user=bob: 200, remaining "0"
	// /?user=bob: 429, remaining "0"
}

// Plans without quotas are for a customer that has not paid and for the service's own
// monitoring. A customer without a plan is not served by accident: identify says so.
func Example_suspendedPlan() {
	plans := map[string]*ratelimit.Plan{
		"ann":     ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60)),
		"bob":     ratelimit.SuspendedPlan("unpaid"),
		"monitor": ratelimit.UnlimitedPlan("internal"),
	}
	unknown := apierror.New(http.StatusForbidden, "unknown_user", "You have no account here.")
	limiter := must(memory.New(noon))
	limited := must(limit.New(limiter, func(r *http.Request) (ratelimit.Caller, error) {
		user := r.URL.Path[1:]
		plan := plans[user]
		if plan == nil {
			return ratelimit.Caller{}, unknown
		}
		return ratelimit.Caller{Subject: "user:" + user, Plan: plan}, nil
	}, limit.Options{Errors: quiet}))
	api := limited(http.HandlerFunc(hello))
	for _, user := range []string{"ann", "bob", "monitor", "eve"} {
		show(api, "/"+user)
	}
	fmt.Println(plans["bob"])
	// Output:
	// /ann: 200, remaining "59"
	// /bob: 403, remaining "0"
	// /monitor: 200, remaining ""
	// /eve: 403, remaining ""
	// unpaid suspended
}

// What limit.ByPlan(planOf) does, with the constructors, and then what it cannot do: a
// second subject, an engine that the service can reach, a price for each request, and a
// function that sees each decision.
func Example_grow() {
	free := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerDay(1000))
	everybody := ratelimit.MustPlan("everybody", ratelimit.Penalty{}, ratelimit.PerSecond(5000))
	limiter, err := memory.New(memory.Options{}) // or redislimit, for several processes
	if err != nil {
		panic(err)
	}
	identify := limit.Addresses{}.Identify(func(r *http.Request) (string, *ratelimit.Plan, error) { return userOf(r), free, nil })
	byPlan := must(limit.New(limiter, func(r *http.Request) (ratelimit.Caller, error) {
		c, err := identify(r)
		c.Also = []ratelimit.Charge{{Subject: "everybody", Plan: everybody}}
		return c, err
	}, limit.Options{
		Cost: func(r *http.Request) int64 {
			if r.Method == "GET" {
				return 1
			}
			return 10
		},
		Observe: func(_ *http.Request, c ratelimit.Caller, d ratelimit.Decision, _ error) {
			fmt.Println(c.Subject, d.Outcome, "cost", d.Cost)
		},
	}))
	handler := authenticate(byPlan(api))
	request(handler, "Authorization", "Basic YW5uOnNlY3JldA==") // ann
	request(handler)
	unbanned, err := limiter.Unban(context.Background(), "user:ann")
	fmt.Println("ann was banned:", unbanned, err)
	// Output:
	// user:ann allowed cost 1
	// 200 limit 1000 remaining 999
	// network:192.0.2.1/32 allowed cost 1
	// 200 limit 1000 remaining 999
	// ann was banned: false <nil>
}
