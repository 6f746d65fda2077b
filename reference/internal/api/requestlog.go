package api

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/animalstore/gatehouse/internal/response"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/ratelimit"
)

// notes are what the gate finds out about a request for its line in the log, which
// is written outside of it.
type notes struct {
	outcome string // allowed, limited, banned, uncharged, undecided; "" if not counted
	key     string // ID of the key
	network string // of a request without a valid key
}

// note notes what became of the request at the limiter.
func note(r *http.Request, c ratelimit.Caller, outcome string) {
	n := &visitOf(r.Context()).notes
	n.outcome = outcome
	if c.Network {
		n.network = strings.TrimPrefix(c.Subject, NetworkSubject(""))
	} else if p, ok := bearer.FromContext[apikey.Principal](r.Context()); ok {
		n.key = p.KeyID
	}
}

// observe notes the decision of the limiter.
func observe(r *http.Request, c ratelimit.Caller, d ratelimit.Decision, err error) {
	outcome := d.Outcome.String()
	if err != nil {
		outcome = "undecided"
	}
	note(r, c, outcome)
}

// logRequests writes one line for each request. It holds neither the target, of
// which only the route is told, nor any field of the request: both can hold keys.
func (a *api) logRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if !a.Logger.Enabled(ctx, slog.LevelInfo) {
			next.ServeHTTP(w, r)
			return
		}
		begin := a.Now()
		v := visitOf(ctx)
		n := &v.notes
		t := response.Track(w)
		aborted := true
		defer func() { // also if the response is aborted by a panic
			attrs := make([]slog.Attr, 0, 10)
			attrs = append(attrs,
				slog.String("request_id", middleware.RequestIDFrom(ctx)),
				slog.String("method", knownMethod(r.Method)),
				slog.String("route", v.route.pattern),
				slog.Int("status", t.Status()),
				slog.Int64("bytes", t.Bytes()),
				slog.Duration("duration", a.Now().Sub(begin)),
			)
			for _, attr := range []slog.Attr{
				slog.String("outcome", n.outcome), slog.String("key", n.key), slog.String("network", n.network),
			} {
				if attr.Value.String() != "" {
					attrs = append(attrs, attr)
				}
			}
			if aborted {
				attrs = append(attrs, slog.Bool("aborted", true))
			}
			a.Logger.LogAttrs(ctx, slog.LevelInfo, "request", attrs...)
		}()
		next.ServeHTTP(t, r)
		aborted = false
	})
}

// knownMethod keeps what a client makes up out of the log.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return method
	default:
		return "other"
	}
}
