// Bans is a service whose operator bans and unbans users by hand.
//
//	go run ./examples/bans
package main

import (
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

func main() {
	handler, err := newHandler()
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "127.0.0.1:8081", Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	log.Printf("listening on http://%s/", server.Addr)
	log.Fatal(server.ListenAndServe())
}

func newHandler() (http.Handler, error) {
	plan := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60))
	engine, err := memory.New(memory.Options{}) // or redislimit, which is a Banner too
	if err != nil {
		return nil, err
	}
	limited, err := limit.New(engine, func(r *http.Request) (ratelimit.Caller, error) {
		user, _, _ := r.BasicAuth() // a service would check the password
		return ratelimit.Caller{Subject: "user:" + user, Plan: plan}, nil
	}, limit.Options{})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/bans/", operatorOnly(bans(engine)))
	mux.Handle("/", limited(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })))
	return mux, nil
}

// bans serves what an operator does with the bans of an engine.
func bans(engine ratelimit.Banner) http.Handler {
	errs := &apierror.Responder{}
	mux := http.NewServeMux()
	mux.Handle("GET /bans/{$}", errs.Handle(func(w http.ResponseWriter, r *http.Request) error {
		inForce, err := engine.Bans(r.Context())
		for _, b := range inForce {
			fmt.Fprintln(w, b.Subject, "until", b.Ends.UTC().Format(time.DateTime))
		}
		return err
	}))
	mux.Handle("PUT /bans/{subject}", errs.Handle(func(w http.ResponseWriter, r *http.Request) error {
		length, err := time.ParseDuration(r.FormValue("for"))
		if err != nil || length <= 0 || length > ratelimit.MaxWindow {
			return apierror.New(http.StatusBadRequest, "invalid_length", "for must be a duration such as 90m or 24h, at most 8784h.")
		}
		return engine.Ban(r.Context(), r.PathValue("subject"), length)
	}))
	mux.Handle("DELETE /bans/{subject}", errs.Handle(func(w http.ResponseWriter, r *http.Request) error {
		banned, err := engine.Unban(r.Context(), r.PathValue("subject"))
		if err == nil && !banned {
			err = apierror.New(http.StatusNotFound, "not_banned", "This subject is not banned.")
		}
		return err
	}))
	return errs.Mux(mux)
}

// operatorOnly takes the word of the client for its name. A service would check a password,
// and serve the bans on an address that clients cannot reach.
func operatorOnly(next http.Handler) http.Handler {
	errs := &apierror.Responder{}
	return errs.Handle(func(w http.ResponseWriter, r *http.Request) error {
		if user, _, _ := r.BasicAuth(); user != "operator" {
			return apierror.New(http.StatusForbidden, "operators_only", "Only an operator may do this.")
		}
		next.ServeHTTP(w, r)
		return nil
	})
}
