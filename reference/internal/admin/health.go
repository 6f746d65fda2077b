package admin

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/middleware"
)

// A Check is one check of /readyz.
type Check struct {
	Name string
	Run  func(ctx context.Context) error // nil: ok
	// Advisory checks are reported but do not make the server unready: another
	// replica would fail them too, or the server works without what they check.
	Advisory bool
}

// checkTimeout is how long all checks may take together.
const checkTimeout = 3 * time.Second

func healthy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Write([]byte("ok\n"))
}

// A readiness is the result of all checks: "ok", or what is wrong, by the name of the check.
type readiness struct {
	Ready  bool              `json:"ready"`
	Checks map[string]string `json:"checks"`
}

// runChecks runs all checks. Without details, a check that fails is only "failing".
func (a *admin) runChecks(ctx context.Context, details bool) readiness {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	result := readiness{true, map[string]string{}}
	for _, c := range a.Checks {
		result.Checks[c.Name] = "ok"
		if err := c.Run(ctx); err != nil {
			result.Checks[c.Name] = "failing"
			if details {
				result.Checks[c.Name] = err.Error()
			}
			result.Ready = result.Ready && c.Advisory
		}
	}
	return result
}

func (a *admin) readyz(w http.ResponseWriter, r *http.Request) error {
	result := a.runChecks(r.Context(), a.trusted(r))
	status := http.StatusOK
	if !result.Ready {
		status = http.StatusServiceUnavailable
	}
	return writeJSON(w, status, result)
}

// An entry is what other parts of the handler add to the log line of a request.
type entry struct {
	subject string // the subject to ban or to unban
	key     string // the ID of a key that was created, revoked or rotated
	outcome string // "" if the status says enough
}

const wrongToken = "wrong token"

type entryKey struct{}

// levelOf returns the level of the line of a request. Reads that are answered are for
// debugging, because pollers send them every few seconds. Profiles are not read so often,
// and tell more than a stranger should know.
func levelOf(r *http.Request, route string, status int, e *entry) slog.Level {
	refused := status >= 400 && status < 500
	read := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case refused || e.outcome == wrongToken:
		return slog.LevelWarn
	case read && !strings.HasPrefix(route, "/debug/"):
		return slog.LevelDebug
	default:
		return slog.LevelInfo
	}
}

// entryOf returns the entry of a request that has passed logRequests.
func entryOf(ctx context.Context) *entry {
	e, _ := ctx.Value(entryKey{}).(*entry)
	return e
}

// logRequests logs each request: the address of the client, the route and the outcome. The
// line has no header field and no query, which could contain a token.
func (a *admin) logRequests(mux *http.ServeMux) middleware.Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			e := new(entry)
			t := middleware.TrackResponse(w)
			next.ServeHTTP(t, r.WithContext(context.WithValue(r.Context(), entryKey{}, e)))

			_, pattern := mux.Handler(r)
			_, route, _ := strings.Cut(pattern, " ")
			attrs := []slog.Attr{
				slog.String("request_id", middleware.RequestIDFrom(r.Context())),
				slog.String("remote", r.RemoteAddr),
				slog.String("method", r.Method),
				slog.String("route", route),
				slog.Int("status", t.Status()),
			}
			if e.subject != "" {
				attrs = append(attrs, slog.String("subject", e.subject))
			}
			if e.key != "" {
				attrs = append(attrs, slog.String("key", e.key))
			}
			if e.outcome != "" {
				attrs = append(attrs, slog.String("outcome", e.outcome))
			}
			a.Logger.LogAttrs(r.Context(), levelOf(r, route, t.Status(), e), "admin request", attrs...)
		})
	}
}
