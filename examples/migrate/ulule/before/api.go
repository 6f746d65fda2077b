// Package api is a service with rate limits.
package api

import (
	"fmt"
	"net/http"
	"time"

	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	"github.com/ulule/limiter/v3/drivers/store/memory"
)

// New returns the service. A user may send 60 requests a minute and 100 a day.
func New() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /pets", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "pets") })
	perDay := stdlib.NewMiddleware(newLimiter("100-D"), stdlib.WithKeyGetter(userOf))
	perMinute := stdlib.NewMiddleware(newLimiter("60-M"), stdlib.WithKeyGetter(userOf))
	return perMinute.Handler(perDay.Handler(mux))
}

func newLimiter(text string) *limiter.Limiter {
	rate, err := limiter.NewRateFromFormatted(text)
	if err != nil {
		panic(err)
	}
	store := memory.NewStoreWithOptions(limiter.StoreOptions{Prefix: text, CleanUpInterval: time.Hour})
	return limiter.New(store, rate)
}

// userOf returns the user that the authentication in front of the service has verified.
func userOf(r *http.Request) string { return r.Header.Get("X-User") }
