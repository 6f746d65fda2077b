// Package api is a service with rate limits.
package api

import (
	"fmt"
	"net/http"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// New returns the service. A user may send 60 requests a minute and 100 a day.
func New() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /pets", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "pets") })
	return limit.ByUser(userOf, ratelimit.PerMinute(60), ratelimit.PerDay(100))(mux)
}

// userOf returns the user that the authentication in front of the service has verified.
func userOf(r *http.Request) string { return r.Header.Get("X-User") }
