package wire

import (
	"net/http"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/inflight"
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
			handler: limited(free, 0, limit.Options{}),
		},
		{
			name: "limited", title: "Limited",
			text:    "The first request beyond a quota. It was not charged. Wait as long as Retry-After says, then send it again. Further requests in the next two seconds are not strikes, since they may have been in flight.",
			handler: limited(free, 60, limit.Options{}),
		},
		{
			name: "limited_strikes", title: "Limited, with strikes",
			text:    "The client did not wait: this is its fourth strike. The text counts down. Send no request until Retry-After has passed, neither this one nor another.",
			handler: struck(ratelimit.KindAPIKey, 3),
		},
		{
			name: "banned_api_key", title: "Banned API key",
			text:    "One strike more starts a ban. The `code` tells a ban from a limit, and so does X-RateLimit-Banned, also if the service writes errors of its own. Remaining is 0, Retry-After covers the whole ban, and Reset is not before its end. Requests during the ban do not make it longer, but the next ban can be. Correct the client: it ignores Retry-After.",
			handler: struck(ratelimit.KindAPIKey, 10),
		},
		{
			name: "banned_network", title: "Banned network",
			text:    "Clients without a valid API key are counted by their network, all of a network together. A client there that sends a valid API key is not banned. Callers of other kinds, such as users, and of several charges get the same code.",
			handler: struck(ratelimit.KindNetwork, 10),
		},
		{
			name: "banned_by_hand", title: "Banned by hand",
			text: "The operator has banned the client, with a reason. Without one the text says \"by the operator of this service\". The code and the fields are the same as for other bans.",
			handler: func(t *testing.T) http.Handler {
				engine := newEngine()
				testcheck.NoError(t, engine.Ban(t.Context(), "owner:ann", time.Hour, "your exports load each pet alone"))
				return counted(engine, owner(free), limit.Options{})
			},
		},
		{
			name: "suspended", title: "Suspended plan",
			text:    "The plan allows no requests. There is no Retry-After: a retry does not help until the operator changes the plan.",
			handler: limited(ratelimit.SuspendedPlan("debtor"), 0, limit.Options{}),
		},
		{
			name: "unlimited", title: "Unlimited plan",
			text:    "Responses have none of the fields.",
			handler: limited(ratelimit.UnlimitedPlan("partner"), 0, limit.Options{}),
		},
		{
			name: "limited_cost", title: "Limited by cost",
			text:    "Requests of this service differ in cost, so the text counts units. A cheaper request may still be admitted: Remaining says up to which cost, if the other quotas have as much.",
			handler: limited(free, 50, limit.Options{Cost: costs(25)}),
		},
		{
			name: "cost_exceeds_limit", title: "Cost exceeds limit",
			text:    "The request costs more than a whole window allows. It was not charged, and there is no Retry-After: send a smaller request.",
			handler: limited(free, 50, limit.Options{Cost: costs(100)}),
		},
		{
			name: "unavailable_closed", title: "Engine unavailable, closed",
			text:    "The engine, such as Redis, cannot decide, and the service refuses requests meanwhile, which is the default. The fields show an exhausted quota, so that clients that only read them wait too. Retry, with growing pauses.",
			handler: failing(false),
		},
		{
			name: "unavailable_open", title: "Engine unavailable, open",
			text:    "The service admits requests meanwhile (`FailOpen`). The fields show an unused quota.",
			handler: failing(true),
		},
		{
			name: "shadow", title: "Shadow mode",
			text:    "The service tries a plan before it enforces it (`Options.Shadow`). Requests beyond the limit are served, with Remaining 0 and without Retry-After.",
			handler: limited(free, 60, limit.Options{Shadow: true}),
		},
	},
}

func costs(units int64) func(*http.Request) int64 {
	return func(*http.Request) int64 { return units }
}

// failing returns pets behind a limiter whose engine does not answer.
func failing(open bool) state {
	return func(t *testing.T) http.Handler {
		engine := ratelimittest.NewRecorder(newEngine())
		engine.Fail()
		return counted(engine, owner(free), limit.Options{FailOpen: open})
	}
}

var quotas = part{
	title: "Kinds of quotas",
	text:  "The three `X-RateLimit` fields always describe one quota.",
	answers: []answer{
		{
			name: "several_quotas", title: "Several quotas",
			text:    "The plan is 60 requests per minute and 50 per day, and the day is used up. Of several exhausted quotas the fields describe the one that refuses the request for the longest time, and Retry-After covers all of them.",
			handler: limited(ratelimit.MustPlan("small", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60), ratelimit.PerDay(50)), 50, limit.Options{}),
		},
		{
			name: "several_charges", title: "Several charges",
			text: "The request counts for a user and for the user's organisation, which has used its 1,000 requests of the day. The request was charged to neither. The text says whose limit it is. The `X-RateLimit` fields of an admitted request describe the one with less left. If a request costs them different numbers of units, it is the one nearest to its end in proportion. The draft's fields list the quotas of both. The plan of the organisation has the scope `organisation`, with which the names of its quotas begin there.",
			handler: func(t *testing.T) http.Handler {
				engine := newEngine()
				organisation := ratelimit.MustPlan("organisation", ratelimit.Penalty{}, ratelimit.PerDay(1000)).WithScope("organisation")
				use(t, engine, "organisation:7", organisation, 1000)
				return counted(engine, ratelimit.Caller{
					Subject: "user:ann", Plan: free,
					Also: []ratelimit.Charge{{Subject: "organisation:7", Plan: organisation}},
				}, limit.Options{Headers: limit.XRateLimit | limit.DraftRateLimit})
			},
		},
		{
			name: "calendar", title: "Calendar month",
			text:    "The plan is 1,000 requests per month, from the 17th. The window ends on 17 March at 00:00 UTC. A client should report the limit rather than wait.",
			handler: limited(ratelimit.MustPlan("free", ratelimit.Penalty{}, ratelimit.PerMonth(1000).From(17)), 1000, limit.Options{}),
		},
		{
			name: "smooth", title: "Smooth quota",
			text:    "The plan is 60 requests per minute, at most 10 at once. Limit is the burst, and Reset the time at which the whole burst is available again. The next unit comes back earlier: Retry-After says when.",
			handler: limited(ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60).Smooth(10)), 10, limit.Options{}),
		},
	},
}

var forms = part{
	title: "Other fields and bodies",
	text:  "A service selects the fields with `Options.Headers`. A client selects the form of errors with Accept. With `Write` and `Translate` of `apierror.Responder` a service writes all errors in a form and language of its own.",
	answers: []answer{
		{
			name: "draft_allowed", title: "Fields of the draft",
			text:    "`DraftRateLimit` sends RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers-11) for all quotas: `q` units in `w` seconds, of which `r` are left for `t` seconds. A calendar window, here a month, has no `w`.",
			handler: limited(monthly, 17, limit.Options{Headers: limit.DraftRateLimit}),
		},
		{
			name: "draft_limited", title: "Fields of the draft, limited",
			text:    "All quotas appear. Retry-After says how long to wait, whatever the fields.",
			handler: limited(monthly, 60, limit.Options{Headers: limit.DraftRateLimit}),
		},
		{
			name: "no_fields", title: "No fields",
			text:    "With `NoHeaders` only a refused request has a field: Retry-After.",
			handler: limited(free, 60, limit.Options{Headers: limit.NoHeaders}),
		},
		{
			name: "problem_limited", title: "Problem details, limited",
			text:    "A client that prefers `application/problem+json` gets the same error as problem details (RFC 9457). `violated-policies` names the exhausted quotas as RateLimit-Policy does.",
			request: withField("Accept: application/problem+json"),
			handler: limited(free, 60, limit.Options{}),
		},
		{
			name: "problem_banned", title: "Problem details, banned",
			text:    "A ban has a type of its own.",
			request: withField("Accept: application/problem+json"),
			handler: struck(ratelimit.KindAPIKey, 10),
		},
		{
			name: "head_limited", title: "HEAD",
			text:    "The header section of GET and no body. If the client were banned, X-RateLimit-Banned would say so.",
			request: "HEAD /v1/pets HTTP/1.1\nHost: api.example.com\n\n",
			handler: limited(free, 60, limit.Options{}),
		},
	},
}

var monthly = ratelimit.MustPlan("monthly", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60), ratelimit.PerMonth(10_000))

// withField returns plainRequest with a further field.
func withField(field string) string {
	return plainRequest[:len(plainRequest)-1] + field + "\n\n"
}

var inProgress = part{
	title: "Requests in progress",
	text:  "Package `middleware/inflight`. When another request will finish is not known; Retry-After is one second.",
	answers: []answer{
		{
			name: "inflight_subject", title: "Too many concurrent requests",
			text: "The client has as many requests in progress as it may. Wait until one of them has finished, and send fewer at once.",
			handler: func(t *testing.T) http.Handler {
				identify := func(*http.Request) (inflight.Caller, error) { return inflight.Caller{Subject: "owner:ann"}, nil }
				return busy(t, testcheck.Must(inflight.New(1, identify, inflight.Options{Errors: quiet})))
			},
		},
		{
			name: "inflight_process", title: "Overloaded",
			text: "The server has as many requests in progress as it can handle, of all clients together. Retry, with growing pauses. A proxy can try another server.",
			handler: func(t *testing.T) http.Handler {
				return busy(t, testcheck.Must(inflight.NewProcess(1, inflight.Options{Errors: quiet})))
			},
		},
	},
}

// busy returns a handler behind l with one request in progress, which lasts until the end
// of the test.
func busy(t *testing.T, l *inflight.Limiter) http.Handler {
	entered := make(chan struct{})
	h := l.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-t.Context().Done()
	}))
	go spend(h, 1)
	<-entered
	return h
}
