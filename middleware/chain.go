package middleware

import (
	"net/http"
	"slices"

	"github.com/animalstore/gatehouse/internal/response"
)

// Middleware returns a handler that does something before or after next, or answers
// instead of it.
type Middleware = func(next http.Handler) http.Handler

// Chain returns h wrapped in m. The first middleware is the outermost: it sees a request
// first and the response last. Nil middlewares are skipped, so that one can be switched
// off by configuration.
func Chain(h http.Handler, m ...Middleware) http.Handler {
	for _, wrap := range slices.Backward(m) {
		if wrap != nil {
			h = wrap(h)
		}
	}
	return h
}

// A TrackedResponse is a ResponseWriter that knows what became of the response. It
// supports [http.ResponseController], [http.Flusher], [http.Hijacker], [http.Pusher] and
// [io.ReaderFrom] as far as the ResponseWriter below does.
type TrackedResponse interface {
	http.ResponseWriter

	// Status returns the final status, 101 if the connection was hijacked, or 0 if
	// the response has not begun. net/http sends 200 after a handler that wrote
	// nothing.
	Status() int
	// Bytes returns how many bytes of the body were written. net/http sends none of those
	// that a handler writes in response to HEAD.
	Bytes() int64
}

// TrackResponse returns w itself if it tracks its response already, as the
// ResponseWriter of [AccessLog] and [apierror.Responder.Recover] does, and a TrackedResponse
// around w otherwise.
func TrackResponse(w http.ResponseWriter) TrackedResponse {
	return response.Track(w)
}
