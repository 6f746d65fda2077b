package admin

import (
	"net/http"
	"strconv"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/ratelimit"
)

// guesses is how many wrong tokens a network may send in a minute. After that, all its
// tokens are refused until the minute ends.
var guesses = ratelimit.MustPlan("wrong admin tokens", ratelimit.Penalty{}, ratelimit.PerMinute(10))

// maxGuessers is how many networks are counted.
const maxGuessers = 4096

var errGuessing = apierror.New(http.StatusTooManyRequests, apierror.CodeRateLimitExceeded,
	"Your network has sent too many requests with a wrong admin token. Wait as long as Retry-After says.")

// limitGuesses refuses all tokens, even the right one, from a network that has sent too
// many wrong ones. Requests without a token pass.
func (a *admin) limitGuesses(next http.Handler) http.Handler {
	if a.Token == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header["Authorization"]) > 0 {
			// If the limiter fails, the token is checked: it is too long to guess.
			d, err := a.wrong.Peek(r.Context(), networkOf(r), guesses)
			if err == nil && !d.Allowed() {
				w.Header().Set("Retry-After", strconv.FormatInt(d.RetryAfterSeconds(), 10))
				a.errors.Respond(w, r, errGuessing)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// countGuesses counts wrong tokens. It is placed after the check of the token.
func (a *admin) countGuesses(next http.Handler) http.Handler {
	if a.Token == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if bearer.OutcomeFrom(r.Context()) == bearer.Invalid {
			entryOf(r.Context()).outcome = wrongToken
			_, _ = a.wrong.Take(r.Context(), networkOf(r), guesses, 1) // see limitGuesses
		}
		next.ServeHTTP(w, r)
	})
}

func networkOf(r *http.Request) string {
	return clientip.NetworkSubject(clientip.FromRemoteAddr().Addr(r))
}
