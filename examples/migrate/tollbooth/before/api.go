// Package api is a service with rate limits.
package api

import (
	"fmt"
	"net/http"
	"time"

	"github.com/didip/tollbooth/v8"
	"github.com/didip/tollbooth/v8/limiter"
)

// New returns the service. A client may send 10 requests a second, and 20 at once.
func New() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /pets", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "pets") })
	bucket := tollbooth.NewLimiter(10, &limiter.ExpirableOptions{DefaultExpirationTTL: time.Hour}).
		SetBurst(20).
		SetIPLookup(limiter.IPLookup{Name: "RemoteAddr"}).
		SetIgnoreURL(true)
	return tollbooth.HTTPMiddleware(bucket)(mux)
}
