// Console is a service with a page for its operators: the busiest clients, and the bans in
// force.
//
//	go run ./examples/console
//	for i in $(seq 20); do curl -s -u ann: http://127.0.0.1:8081/pets; done
//	curl -s -u operator:secret http://127.0.0.1:8081/console/console.json
//
// Open http://127.0.0.1:8081/console/ in a browser, as operator with the password secret.
package main

import (
	"context"
	"crypto/subtle"
	"fmt"
	"net/http"
	"time"

	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/examples/internal/demo"
	"github.com/animalstore/gatehouse/middleware/console"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

func main() { demo.Serve(newHandler()) }

var (
	free   = ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(10), ratelimit.PerDay(1000))
	sunset = time.Date(2030, time.December, 5, 0, 0, 0, 0, time.UTC)
)

func newHandler() (http.Handler, error) {
	limiter, err := memory.New(memory.Options{})
	if err != nil {
		return nil, err
	}
	ops, err := console.New(limiter, console.Options{Title: "pets", Deprecations: deprecations})
	if err != nil {
		return nil, err
	}
	limited, err := limit.New(limiter, limit.Addresses{}.Identify(planOf), limit.Options{Observe: ops.Observe})
	if err != nil {
		return nil, err
	}
	getPet, err := deprecation.New(deprecation.Options{Sunset: sunset, Successor: "/pets", OnUse: func(r *http.Request) {
		user, _, _ := planOf(r)
		ops.DeprecatedUse("getPet", limit.UserSubject(user))
	}})
	if err != nil {
		return nil, err
	}

	pets := http.NewServeMux()
	pets.HandleFunc("GET /pets", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "Rex") })
	pets.Handle("GET /pets/1", getPet.Enforce(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "Rex") })))
	mux := http.NewServeMux()
	mux.Handle("/", limited(pets))
	mux.Handle("/console/", requireOperator(ops))
	return mux, nil
}

func deprecations(context.Context) ([]console.Deprecation, error) {
	return []console.Deprecation{{Operation: "getPet", Sunset: sunset, Successor: "/pets"}}, nil
}

// What follows stands for the authentication of a service.

func planOf(r *http.Request) (user string, plan *ratelimit.Plan, err error) {
	user, _, _ = r.BasicAuth()
	return user, free, nil
}

func requireOperator(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if user != "operator" || subtle.ConstantTimeCompare([]byte(password), []byte("secret")) == 0 {
			w.Header().Set("WWW-Authenticate", `Basic realm="operators"`)
			http.Error(w, "operators only", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
