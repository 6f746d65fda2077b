package wire

import (
	"net/http"
	"testing"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

var quotas = part{
	title: "Kinds of quotas",
	text:  "The three `X-RateLimit` fields always describe one quota.",
	answers: []answer{
		{
			name: "several_quotas", title: "Several quotas",
			text: "The plan is 60 requests per minute and 50 per day, and the day is used up. Of several exhausted quotas the fields describe the one that refuses the request for the longest time, and Retry-After covers all of them.",
			handler: func(t *testing.T) http.Handler {
				return limited(t, ratelimit.MustPlan("small", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60), ratelimit.PerDay(50)), 50, limit.Options{})
			},
		},
		{
			name: "several_charges", title: "Several charges",
			text: "The request counts for a user and for the user's organisation, which has used its 1,000 requests of the day. The request was charged to neither. The fields of an admitted request describe the one with less left.",
			handler: func(t *testing.T) http.Handler {
				engine := newEngine(t)
				organisation := ratelimit.MustPlan("organisation", ratelimit.Penalty{}, ratelimit.PerDay(1000))
				use(t, engine, "organisation:7", organisation, 1000)
				return counted(t, engine, ratelimit.Caller{
					Subject: "user:ann", Plan: free,
					Also: []ratelimit.Charge{{Subject: "organisation:7", Plan: organisation}},
				}, limit.Options{})
			},
		},
		{
			name: "calendar", title: "Calendar month",
			text: "The plan is 1,000 requests per month, from the 17th. The window ends on 17 March at 00:00 UTC. A client should not hold requests back for so long, but report the limit.",
			handler: func(t *testing.T) http.Handler {
				return limited(t, ratelimit.MustPlan("free", ratelimit.Penalty{}, ratelimit.PerMonth(1000).From(17)), 1000, limit.Options{})
			},
		},
		{
			name: "smooth", title: "Smooth quota",
			text: "The plan is 60 requests per minute, at most 10 at once. Limit is the burst, and Reset the time at which the whole burst is available again. The next unit comes back earlier: Retry-After says when.",
			handler: func(t *testing.T) http.Handler {
				return limited(t, ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60).Smooth(10)), 10, limit.Options{})
			},
		},
	},
}
