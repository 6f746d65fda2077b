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

// Audited returns a limiter that also stores the bans of l by hand, and their ends, in the audit
// log, with the client of the request as the actor.
func Audited(l Limiter, audits store.Audits, logger *slog.Logger, now func() time.Time) Limiter {
	return audited{l, audits, logger, now}
}

type audited struct {
	Limiter
	audits store.Audits
	logger *slog.Logger
	now    func() time.Time
}

// Ban implements [ratelimit.Banner].
func (l audited) Ban(ctx context.Context, subject string, length time.Duration, reason string) error {
	err := l.Limiter.Ban(ctx, subject, length, reason)
	detail := `length="` + length.String() + `"`
	if reason != "" {
		detail += " reason=" + strconv.Quote(reason)
	}
	l.record(ctx, store.AuditEntry{Action: store.BanStart, Target: subject, Detail: detail}, "banned", err)
	return err
}

// Unban implements [ratelimit.Banner].
func (l audited) Unban(ctx context.Context, subject string) (bool, error) {
	was, err := l.Limiter.Unban(ctx, subject)
	if !was && err == nil {
		e := entryOf(ctx)
		e.subject, e.outcome = subject, "was not banned"
		return was, err
	}
	l.record(ctx, store.AuditEntry{Action: store.BanEnd, Target: subject}, "unbanned", err)
	return was, err
}

// record stores a change that took effect. The engine has made it already, so an error goes to the
// log only: a full disk must not prevent a ban.
func (l audited) record(ctx context.Context, a store.AuditEntry, outcome string, failure error) {
	e := entryOf(ctx)
	e.subject, e.outcome = a.Target, outcome
	if failure != nil {
		e.outcome = "failed"
	}
	where, ok := tookEffect(failure)
	if !ok {
		return
	}
	a.At, a.Actor, a.From, a.Detail = l.now(), e.by.Name, e.by.From, strings.TrimSpace(a.Detail+where)
	if err := l.audits.AddAudit(context.WithoutCancel(ctx), a); err != nil {
		l.logger.ErrorContext(ctx, "cannot store an entry of the audit log", slog.String("action", a.Action),
			slog.String("subject", a.Target), slog.String("remote", e.by.From), slog.Any("error", err))
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
