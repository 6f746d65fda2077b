// Package api is a service with rate limits.
package api

import (
	"fmt"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/go-chi/httprate"
)

// New returns the service, which is behind proxies in 10.0.0.0/8. A client may send 100
// requests a minute, of which 5 sign in.
func New() http.Handler {
	r := chi.NewRouter()
	r.Use(middleware.ClientIPFromXFF("10.0.0.0/8"))
	r.Use(httprate.LimitBy(100, time.Minute, clientIP))
	r.Get("/pets", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "pets") })
	r.With(httprate.LimitBy(5, time.Minute, clientIP)).Post("/login", login)
	return r
}

func clientIP(r *http.Request) (string, error) {
	return httprate.CanonicalizeIP(middleware.GetClientIP(r.Context())), nil
}

func login(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "signed in") }
