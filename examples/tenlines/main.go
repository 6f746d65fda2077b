// Tenlines is a chi service with plans, header fields and bans, by the ten lines of the
// first page of the repository. Ann has the plan free, and bob has pro.
//
//	go run ./examples/tenlines
//	curl -i -u ann: http://127.0.0.1:8081/pets
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

func main() {
	server := &http.Server{Addr: "127.0.0.1:8081", Handler: newRouter(), ReadHeaderTimeout: 5 * time.Second}
	log.Printf("listening on http://%s/pets", server.Addr)
	log.Fatal(server.ListenAndServe())
}

func newRouter() http.Handler {
	r := chi.NewRouter()
	r.Use(authenticate)

	guests := ratelimit.MustPlan("guests", ratelimit.Penalty{}, ratelimit.PerMinute(60))
	free := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60), ratelimit.PerDay(1_000))
	pro := ratelimit.MustPlan("pro", ratelimit.DefaultPenalty(), ratelimit.PerMinute(600), ratelimit.PerDay(50_000))
	plans := map[string]*ratelimit.Plan{"": guests, "free": free, "pro": pro}
	r.Use(limit.ByPlan(func(r *http.Request) (string, *ratelimit.Plan, error) {
		user := userOf(r)
		return user.ID, plans[user.Plan], nil
	}))

	r.Get("/pets", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "the pets of %s\n", userOf(r).ID)
	})
	return r
}

// What follows stands for the users of a service, and its authentication.

type user struct{ ID, Plan string }

// bob pays; every other user has the plan free.
func lookup(name string) user {
	if name == "bob" {
		return user{name, "pro"}
	}
	return user{name, "free"}
}

type userKey struct{}

// authenticate puts the user into the context. A real service checks a password.
func authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, _, _ := r.BasicAuth(); name != "" {
			r = r.WithContext(context.WithValue(r.Context(), userKey{}, lookup(name)))
		}
		next.ServeHTTP(w, r)
	})
}

// userOf returns the user that sent the request; the zero user is a guest.
func userOf(r *http.Request) user {
	u, _ := r.Context().Value(userKey{}).(user)
	return u
}
