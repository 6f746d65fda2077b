package admin

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/animalstore/gatehouse/middleware"
)

// An entry is what other parts of the handler add to the log line of a request.
type entry struct {
	subject string // the subject to unban
	outcome string // "" if the status says enough
}

const wrongToken = "wrong token"

type entryKey struct{}

// entryOf returns the entry of a request that has passed audit.
func entryOf(ctx context.Context) *entry {
	e, _ := ctx.Value(entryKey{}).(*entry)
	return e
}

// audit logs each request: the address of the client, the route and the outcome. Health
// checks that are answered are not logged, because they come every few seconds. The line
// has no header field and no query, which could contain a token.
func (a *admin) audit(mux *http.ServeMux) middleware.Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			e := new(entry)
			t := middleware.TrackResponse(w)
			next.ServeHTTP(t, r.WithContext(context.WithValue(r.Context(), entryKey{}, e)))

			_, pattern := mux.Handler(r)
			_, route, _ := strings.Cut(pattern, " ")
			refused := t.Status() >= 400 && t.Status() < 500
			if e.outcome == "" && !refused && (route == "/healthz" || route == "/readyz") {
				return
			}
			level := slog.LevelInfo
			if refused || e.outcome == wrongToken {
				level = slog.LevelWarn
			}
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
			if e.outcome != "" {
				attrs = append(attrs, slog.String("outcome", e.outcome))
			}
			a.Logger.LogAttrs(r.Context(), level, "admin request", attrs...)
		})
	}
}
