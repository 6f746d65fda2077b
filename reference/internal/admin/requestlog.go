package admin

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// An entry is what the handlers know about a request, for its log line and for each other.
type entry struct {
	by      store.Actor // for the audit log
	trusted bool        // it has the token, or needs none
	subject string      // the subject to ban or to unban
	outcome string      // "" if the status says enough
}

func (a *admin) newEntry(r *http.Request) *entry {
	e := &entry{by: actor(r), trusted: a.Token == ""}
	if sent := sentToken(r); !e.trusted && sent != "" {
		if e.trusted = a.isToken(sent); !e.trusted {
			e.outcome = wrongToken
		}
	}
	return e
}

const wrongToken = "wrong token"

type entryKey struct{}

// levelOf returns the level of the line of a request. Reads that are answered have level Debug,
// because monitoring sends them every few seconds. Profiles are read rarely, and tell more than
// a stranger should know.
func levelOf(r *http.Request, route string, status int, e *entry) slog.Level {
	refused := status >= 400 && status < 500
	read := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
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
	if e, ok := ctx.Value(entryKey{}).(*entry); ok {
		return e
	}
	return new(entry)
}

// logRequests logs each request: the address of the client, the route and the outcome. The
// line has no header field and no query, which could contain a token.
func (a *admin) logRequests(mux *http.ServeMux) middleware.Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			e := a.newEntry(r)
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
			for _, note := range []slog.Attr{slog.String("subject", e.subject), slog.String("outcome", e.outcome)} {
				if note.Value.String() != "" {
					attrs = append(attrs, note)
				}
			}
			a.Logger.LogAttrs(r.Context(), levelOf(r, route, t.Status(), e), "admin request", attrs...)
		})
	}
}
