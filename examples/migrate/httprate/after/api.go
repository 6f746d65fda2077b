// Package api is a service with rate limits.
package api

import (
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// New returns the service, which is behind proxies in 10.0.0.0/8. A client may send 100
// requests a minute, of which 5 sign in.
func New() http.Handler {
	r := chi.NewRouter()
	behind := limit.Behind("10.0.0.0/8")
	r.Use(behind.ByIP(ratelimit.PerMinute(100)))
	r.Get("/pets", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "pets") })
	r.With(behind.ByIP(ratelimit.PerMinute(5))).Post("/login", login)
	return r
}

func login(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "signed in") }
