// Package api is a service with rate limits.
package api

import (
	"fmt"
	"net/http"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// New returns the service. A client may send 10 requests a second, and 20 at once.
func New() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /pets", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "pets") })
	return limit.ByIP(ratelimit.PerMinute(600).Smooth(20))(mux)
}
