package limit_test

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A service answers denied requests in its own form, and in the client's language.
func ExampleOptions_deny() {
	plan := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(1))
	engine, err := memory.New(noon)
	if err != nil {
		panic(err)
	}
	limited, err := limit.New(engine, func(r *http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: "owner:17", Plan: plan}, nil
	}, limit.Options{
		Headers: limit.NoHeaders, // Retry-After is set nevertheless
		Deny: func(w http.ResponseWriter, r *http.Request, c ratelimit.Caller, d ratelimit.Decision) {
			e := limit.Denial(c, &d)
			text := e.Message
			if d.Outcome == ratelimit.Limited && strings.HasPrefix(r.Header.Get("Accept-Language"), "de") {
				text = fmt.Sprintf("Bitte warten Sie %d Sekunden.", int(math.Ceil(d.RetryAfter.Seconds())))
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(e.Status)
			fmt.Fprintf(w, "{\"error\":%q}\n", text)
		},
	})
	if err != nil {
		panic(err)
	}
	api := limited(http.HandlerFunc(hello))
	for range 2 {
		r := httptest.NewRequest("GET", "/notes", nil)
		r.Header.Set("Accept-Language", "de-CH, en;q=0.5")
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		fmt.Print(w.Code, " ", w.Header().Get("Retry-After"), " ", w.Body)
	}
	// Output:
	// 200  hello
	// 429 60 {"error":"Bitte warten Sie 60 Sekunden."}
}
