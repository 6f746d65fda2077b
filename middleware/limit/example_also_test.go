package limit_test

import (
	"net/http"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A request counts for a user, and for the user's organisation. Each answer shows the
// one with less left, and a request that one of them refuses is charged to neither.
func Example_also() {
	user := ratelimit.MustPlan("user", ratelimit.DefaultPenalty(), ratelimit.PerMinute(2))
	organisation := ratelimit.MustPlan("organisation", ratelimit.Penalty{}, ratelimit.PerMinute(3))
	engine, err := memory.New(noon)
	if err != nil {
		panic(err)
	}
	limited, err := limit.New(engine, func(r *http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{
			Subject: "user:" + r.FormValue("user"), Plan: user,
			Also: []ratelimit.Charge{{Subject: "organisation:7", Plan: organisation}},
		}, nil
	}, limit.Options{})
	if err != nil {
		panic(err)
	}
	api := limited(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, name := range []string{"ann", "ann", "ann", "bob", "bob"} {
		show(api, "/?user="+name)
	}
	// Output:
	// /?user=ann: 200, remaining "1"
	// /?user=ann: 200, remaining "0"
	// /?user=ann: 429, remaining "0"
	// /?user=bob: 200, remaining "0"
	// /?user=bob: 429, remaining "0"
}
