// Tenlines is a chi service to which ten lines, those of the first page of the repository,
// add plans, header fields and bans. Ann has the plan free, and bob has pro.
//
//	go run ./examples/tenlines
//	for i in $(seq 61); do curl -i -u ann: http://127.0.0.1:8081/pets; done
package main

import (
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
	r.Use(limit.ByPlan(func(r *http.Request) (string, *ratelimit.Plan) {
		user := userOf(r)
		return user.ID, plans[user.Plan]
	}))

	r.Get("/pets", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "the pets of %s\n", userOf(r).ID)
	})
	return r
}
