package wire

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

var limits = part{
	title: "Rate limits",
	text:  "The plan is 60 requests per minute and 1,000 per day, with the default penalty, unless the answer says otherwise.",
	answers: []answer{
		{
			name: "allowed", title: "Allowed",
			text:    "Every response, errors included, says what the quota with the least remaining has left. A client that slows down before 0 is never refused.",
			handler: func(t *testing.T) http.Handler { return limited(t, free, ratelimit.Options{}) },
		},
		{
			name: "limited", title: "Limited",
			text: "The first request beyond the quota. It is not charged. Wait as long as Retry-After says, then send it again. Requests of the next two seconds may have been in flight and are not strikes.",
			handler: func(t *testing.T) http.Handler {
				h := limited(t, free, ratelimit.Options{})
				spend(h, 60)
				return h
			},
		},
	},
}

// free is the plan of most answers.
var free = ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60), ratelimit.PerDay(1000))

// pets serves the resource behind the middlewares.
var pets = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, `[{"id":1,"name":"Rex"}]`)
})

// newEngine returns an engine on the clock of the bubble.
func newEngine(t *testing.T) *memory.Limiter {
	engine, err := memory.New(memory.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

// limited returns pets behind a limiter for one owner of API keys.
func limited(t *testing.T, plan *ratelimit.Plan, opts ratelimit.Options) http.Handler {
	return counted(t, newEngine(t), ratelimit.Caller{Subject: "owner:ann", Plan: plan, Kind: ratelimit.KindAPIKey}, opts)
}

// counted returns pets behind a limiter for one caller.
func counted(t *testing.T, l ratelimit.Limiter, c ratelimit.Caller, opts ratelimit.Options) http.Handler {
	limit, err := ratelimit.New(l, func(*http.Request) (ratelimit.Caller, error) { return c, nil }, opts)
	if err != nil {
		t.Fatal(err)
	}
	return limit(pets)
}
