package admin

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/ratelimit"
)

// guesses is how many wrong tokens a network may send in a minute.
var guesses = ratelimit.MustPlan("wrong admin tokens", ratelimit.Penalty{}, ratelimit.PerMinute(10))

// maxGuessers is how many networks are counted.
const maxGuessers = 4096

var errGuessing = apierror.New(http.StatusTooManyRequests, apierror.CodeRateLimitExceeded,
	"Your network has sent too many requests with a wrong admin token. Wait as long as Retry-After says.")

// dropBodies does not wait for the body of a request without the right token, as net/http does
// before it answers: slow bodies would keep the few connections from the operator.
func (a *admin) dropBodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.Token != "" && r.ContentLength != 0 && !a.trusted(r) {
			w.Header().Set("Connection", "close")
			_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) // an error: it waits
		}
		next.ServeHTTP(w, r)
	})
}

// limitGuesses refuses wrong tokens of a network that has sent too many. It is placed after
// the check of the token: wrong tokens never lock out the right one, which is too long to
// guess. A health check with a wrong token counts, and is answered as one without a token.
func (a *admin) limitGuesses(next http.Handler) http.Handler {
	if a.Token == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if bearer.OutcomeFrom(r.Context()) == bearer.Invalid {
			entryOf(r.Context()).outcome = wrongToken
			d, err := a.wrong.Take(r.Context(), networkOf(r), guesses, 1)
			if err == nil && !d.Allowed() && r.URL.Path != "/healthz" && r.URL.Path != "/readyz" {
				w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(d.RetryAfter.Seconds()))))
				a.errors.Respond(w, r, errGuessing)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

func networkOf(r *http.Request) string {
	return clientip.NetworkSubject(clientip.FromRemoteAddr().Addr(r))
}
