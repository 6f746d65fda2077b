package wire

import (
	"net/http"
	"testing"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

var limits = part{
	title: "Rate limits",
	text:  "Package `middleware/limit`. Unless the answer says otherwise, the plan is 60 requests per minute and 1,000 per day, with the default penalty, and the caller has an API key.",
	answers: []answer{
		{
			name: "allowed", title: "Allowed",
			text:    "Every response, errors included, says how much is left of the quota with the least remaining. A client that sends at most Remaining requests until Reset is not limited, unless others share its quota.",
			handler: func(t *testing.T) http.Handler { return limited(t, free, 0, limit.Options{}) },
		},
		{
			name: "limited", title: "Limited",
			text:    "The first request beyond a quota. It was not charged. Wait as long as Retry-After says, then send it again. Further requests in the next two seconds are not strikes, since they may have been in flight.",
			handler: func(t *testing.T) http.Handler { return limited(t, free, 60, limit.Options{}) },
		},
		{
			name: "limited_strikes", title: "Limited, with strikes",
			text:    "The client did not wait: this is its fourth strike. The text counts down. Send no request until Retry-After has passed, neither this one nor another.",
			handler: func(t *testing.T) http.Handler { return struck(t, ratelimit.KindAPIKey, 3) },
		},
		{
			name: "limited_last", title: "Last before a ban",
			text:    "The tenth strike, the last that starts no ban. Wait as long as Retry-After says.",
			handler: func(t *testing.T) http.Handler { return struck(t, ratelimit.KindAPIKey, 9) },
		},
		{
			name: "banned_api_key", title: "Banned API key",
			text:    "One strike more starts a ban. The `code` tells a ban from a limit. Remaining is 0, and Retry-After and Reset cover the whole ban. Requests during the ban do not make it longer, but the next ban can be. Correct the client: it ignores Retry-After.",
			handler: func(t *testing.T) http.Handler { return struck(t, ratelimit.KindAPIKey, 10) },
		},
		{
			name: "banned_network", title: "Banned network",
			text:    "Clients without a valid API key are counted by their network, all of a network together. A client there that sends a valid API key is not banned. Correct the client, as above.",
			handler: func(t *testing.T) http.Handler { return struck(t, ratelimit.KindNetwork, 10) },
		},
		{
			name: "banned_client", title: "Banned client",
			text:    "A caller of any other kind, such as a user. The code is that of a network.",
			handler: func(t *testing.T) http.Handler { return struck(t, 0, 10) },
		},
		{
			name: "suspended", title: "Suspended plan",
			text: "The plan allows no requests. There is no Retry-After: a retry does not help until the operator changes the plan.",
			handler: func(t *testing.T) http.Handler {
				return limited(t, ratelimit.SuspendedPlan("debtor"), 0, limit.Options{})
			},
		},
		{
			name: "unlimited", title: "Unlimited plan",
			text: "Responses have none of the fields.",
			handler: func(t *testing.T) http.Handler {
				return limited(t, ratelimit.UnlimitedPlan("partner"), 0, limit.Options{})
			},
		},
		{
			name: "limited_cost", title: "Limited by cost",
			text: "Requests of this service differ in cost, so the text counts units. A cheaper request may still be admitted: Remaining says up to which cost, if the other quotas have as much.",
			handler: func(t *testing.T) http.Handler {
				return limited(t, free, 50, limit.Options{Cost: costs(25)})
			},
		},
		{
			name: "cost_exceeds_limit", title: "Cost exceeds limit",
			text: "The request costs more than a whole window allows. It was not charged, and there is no Retry-After: send a smaller request.",
			handler: func(t *testing.T) http.Handler {
				return limited(t, free, 50, limit.Options{Cost: costs(100)})
			},
		},
		{
			name: "unavailable_closed", title: "Engine unavailable, closed",
			text:    "The engine, such as Redis, cannot decide, and the service refuses requests meanwhile, which is the default. The fields are those of an exhausted quota, so that clients that only read them wait too. Retry, with growing pauses.",
			handler: func(t *testing.T) http.Handler { return failing(t, false) },
		},
		{
			name: "unavailable_open", title: "Engine unavailable, open",
			text:    "The service admits requests meanwhile (`FailOpen`). The fields are those of an unused quota.",
			handler: func(t *testing.T) http.Handler { return failing(t, true) },
		},
		{
			name: "shadow", title: "Shadow mode",
			text: "The service tries a plan before it enforces it (`Options.Shadow`). Requests beyond the limit are served, with Remaining 0 and without Retry-After.",
			handler: func(t *testing.T) http.Handler {
				return limited(t, free, 60, limit.Options{Shadow: true})
			},
		},
	},
}

func costs(units int64) func(*http.Request) int64 {
	return func(*http.Request) int64 { return units }
}

// failing returns pets behind a limiter whose engine does not answer.
func failing(t *testing.T, open bool) http.Handler {
	engine := ratelimittest.NewRecorder(newEngine(t))
	engine.Fail()
	return counted(t, engine, owner(free), limit.Options{FailOpen: open})
}
