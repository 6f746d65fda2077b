package wire

import (
	"net/http"
	"testing"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

var forms = part{
	title: "Other fields and bodies",
	text:  "A service selects the fields with `Options.Headers`. A client selects the form of errors with Accept. With `Options.Deny` a service writes a body of its own.",
	answers: []answer{
		{
			name: "draft_allowed", title: "Fields of the draft",
			text: "`DraftRateLimit` sends RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers-11) for all quotas: `q` units in `w` seconds, of which `r` are left for `t` seconds. A calendar window, here a month, has no `w`. The draft may still change.",
			handler: func(t *testing.T) http.Handler {
				return limited(t, monthly, 17, limit.Options{Headers: limit.DraftRateLimit})
			},
		},
		{
			name: "draft_limited", title: "Fields of the draft, limited",
			text: "All quotas appear. Retry-After says how long to wait, whatever the fields.",
			handler: func(t *testing.T) http.Handler {
				return limited(t, monthly, 60, limit.Options{Headers: limit.DraftRateLimit})
			},
		},
		{
			name: "no_fields", title: "No fields",
			text: "With `NoHeaders` only a refused request has a field: Retry-After.",
			handler: func(t *testing.T) http.Handler {
				return limited(t, free, 60, limit.Options{Headers: limit.NoHeaders})
			},
		},
		{
			name: "problem_limited", title: "Problem details, limited",
			text:    "A client that prefers `application/problem+json` gets the same error as problem details (RFC 9457). `violated-policies` names the exhausted quotas as RateLimit-Policy does.",
			request: withField("Accept: application/problem+json"),
			handler: func(t *testing.T) http.Handler { return limited(t, free, 60, limit.Options{}) },
		},
		{
			name: "problem_banned", title: "Problem details, banned",
			text:    "A ban has a type of its own.",
			request: withField("Accept: application/problem+json"),
			handler: func(t *testing.T) http.Handler { return struck(t, ratelimit.KindAPIKey, 10) },
		},
		{
			name: "head_limited", title: "HEAD",
			text:    "The header section of GET and no body. Without the body a client cannot tell a ban from a limit, and need not: Retry-After covers both.",
			request: "HEAD /v1/pets HTTP/1.1\nHost: api.example.com\n\n",
			handler: func(t *testing.T) http.Handler { return limited(t, free, 60, limit.Options{}) },
		},
	},
}

var monthly = ratelimit.MustPlan("monthly", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60), ratelimit.PerMonth(10_000))

// withField returns plainRequest with a further field.
func withField(field string) string {
	return plainRequest[:len(plainRequest)-1] + field + "\n\n"
}
