package inflight_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/inflight"
)

func Example() {
	process, err := inflight.NewProcess(500, inflight.Options{})
	if err != nil {
		panic(err)
	}
	identify := func(r *http.Request) (inflight.Caller, error) {
		user, _, _ := r.BasicAuth() // in a service: the user that authentication has found
		return inflight.Caller{Subject: "user:" + user}, nil
	}
	perUser, err := inflight.New(1, identify, inflight.Options{})
	if err != nil {
		panic(err)
	}

	var handler http.Handler
	send := func(user string) {
		r := httptest.NewRequest("GET", "/report", nil)
		r.SetBasicAuth(user, "secret")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(user, w.Code, w.Body)
	}
	report := func(w http.ResponseWriter, r *http.Request) {
		if user, _, _ := r.BasicAuth(); user == "ann" {
			send("ann") // while her first request runs
			send("bob")
		}
		fmt.Fprint(w, "report")
	}
	handler = middleware.Chain(http.HandlerFunc(report), process.Middleware, perUser.Middleware)
	send("ann")
	// Output:
	// ann 429 {"code":"too_many_concurrent_requests","message":"Only 1 of your requests may be in progress at a time. Wait for it to finish before you send the next.","status":429}
	//
	// bob 200 report
	// ann 200 report
}

// Free users are shed before paying ones: of two requests that run, one at most is theirs.
func ExampleNewProcess() {
	all, err := inflight.NewProcess(2, inflight.Options{})
	if err != nil {
		panic(err)
	}
	free, err := inflight.NewProcess(1, inflight.Options{})
	if err != nil {
		panic(err)
	}
	var handler http.Handler
	send := func(plan string) {
		r := httptest.NewRequest("GET", "/report", nil)
		r.Header.Set("Plan", plan)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(plan, w.Code, w.Body)
	}
	report := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Plan") == "free" {
			send("free") // while the first request runs
			send("paid")
		}
		fmt.Fprint(w, "report")
	}
	paid := all.Middleware(http.HandlerFunc(report))
	others := free.Middleware(paid)
	handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Plan") == "paid" { // in a service: from the principal
			paid.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	})
	send("free")
	// Output:
	// free 503 {"code":"overloaded","message":"The service is handling as many requests as it can. Wait as long as Retry-After says.","status":503}
	//
	// paid 200 report
	// free 200 report
}

// Callers whose plans differ.
func ExampleCaller() {
	limits := map[string]int{"free": 1, "pro": 10}
	identify := func(r *http.Request) (inflight.Caller, error) {
		user, plan := r.Header.Get("User"), r.Header.Get("Plan") // in a service: from the principal
		return inflight.Caller{Subject: "user:" + user, Limit: limits[plan]}, nil
	}
	perUser, err := inflight.New(1, identify, inflight.Options{
		Observe: func(_ *http.Request, c inflight.Caller, d inflight.Decision) {
			fmt.Printf("%s: %d of %d\n", c.Subject, d.Running, d.Limit)
		},
	})
	if err != nil {
		panic(err)
	}
	handler := perUser.Middleware(http.NotFoundHandler())
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("User", "ann")
	r.Header.Set("Plan", "pro")
	handler.ServeHTTP(httptest.NewRecorder(), r)
	// Output: user:ann: 1 of 10
}
