package admin

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// actor returns the client of a request for the audit log.
func actor(r *http.Request) store.Actor {
	from := r.RemoteAddr
	if addr, err := netip.ParseAddrPort(from); err == nil {
		from = addr.Addr().Unmap().String()
	}
	return store.Actor{Name: "admin", From: from}
}

// auditBan stores that a subject was banned or unbanned. The ban itself is in force
// already, so an error goes to the log only: a full disk must not prevent a ban.
func (a *admin) auditBan(r *http.Request, s *Server, action, subject, detail string) {
	by := actor(r)
	err := s.Store.AddAudit(context.WithoutCancel(r.Context()), store.AuditEntry{
		At: a.Now(), Actor: by.Name, From: by.From, Action: action, Target: subject, Detail: strings.TrimSpace(detail),
	})
	if err != nil {
		a.Logger.ErrorContext(r.Context(), "cannot store an entry of the audit log", slog.String("action", action),
			slog.String("subject", subject), slog.String("remote", r.RemoteAddr), slog.Any("error", err))
	}
}

// tookEffect reports whether a command of the engine took effect. If that was on this
// server only, because Redis did not answer, the detail for the audit log says so.
func tookEffect(err error) (detail string, ok bool) {
	if errors.Is(err, failover.ErrLocalOnly) {
		return ` effect="on this server only"`, true
	}
	return "", err == nil
}

// The number of entries that GET /audit shows.
const (
	defaultAudit = 100
	maxAudit     = 1000
)

var errAuditQuery = apierror.New(http.StatusBadRequest, apierror.CodeInvalidParameter,
	"The parameters are since, a time such as 2026-11-22T00:00:00Z, and limit, a whole number from 1 to 1000.")

// listAudit lists the newest entries of the audit log, the newest first.
func (a *admin) listAudit(w http.ResponseWriter, r *http.Request, s *Server) error {
	q, ok := parseAuditQuery(r.URL.RawQuery)
	if !ok {
		return errAuditQuery
	}
	entries, err := s.Store.ListAudit(r.Context(), q)
	if err != nil {
		return storeError(err)
	}
	return writeJSON(w, http.StatusOK, map[string]any{"entries": entries})
}

// parseAuditQuery reads the parameters since and limit, each at most once. An empty one is
// the same as none.
func parseAuditQuery(query string) (q store.AuditQuery, ok bool) {
	q.Limit = defaultAudit
	values, err := url.ParseQuery(query)
	if err != nil {
		return q, false
	}
	for name, v := range values {
		if len(v) != 1 {
			return q, false
		}
		switch {
		case name != "since" && name != "limit":
			return q, false
		case v[0] == "":
		case name == "since":
			q.Since, err = time.Parse(time.RFC3339, v[0])
		default:
			q.Limit, err = strconv.Atoi(v[0])
		}
		if err != nil {
			return q, false
		}
	}
	return q, q.Limit >= 1 && q.Limit <= maxAudit
}
