package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/animalstore/gatehouse/middleware/console"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// Operators read on the page which clients send the most requests, and programs in the JSON
// beside it.
func Example() {
	free := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMonth(1000))
	limiter, err := memory.New(memory.Options{})
	if err != nil {
		panic(err)
	}
	ops, err := console.New(limiter, console.Options{Title: "pets"})
	if err != nil {
		panic(err)
	}
	limited, err := limit.New(limiter, limit.Addresses{}.Identify(func(r *http.Request) (string, *ratelimit.Plan, error) {
		user, _, _ := r.BasicAuth() // stands for the authentication of the service
		return user, free, nil
	}), limit.Options{Observe: ops.Observe})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/console/", ops) // behind the authentication of operators
	mux.Handle("/", limited(http.NotFoundHandler()))

	get := func(user, path string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest("GET", path, nil), httptest.NewRecorder()
		r.SetBasicAuth(user, "")
		mux.ServeHTTP(w, r)
		return w
	}
	for range 3 {
		get("ann", "/pets")
	}
	get("bob", "/pets")

	var report struct {
		Subjects []struct {
			Subject, Plan string
			Allowed       int
			Quotas        []struct{ Quota string }
		}
	}
	if err := json.Unmarshal(get("operator", "/console/console.json?last=day").Body.Bytes(), &report); err != nil {
		panic(err)
	}
	for _, s := range report.Subjects {
		fmt.Println(s.Subject, s.Allowed, "of", s.Quotas[0].Quota)
	}

	// Output:
	// user:ann 3 of 1000/month
	// user:bob 1 of 1000/month
}
