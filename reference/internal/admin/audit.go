package admin

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

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

// Audited returns l, except that it stores each ban and unban in the audit log, with the client
// of the request as the actor.
func Audited(l Limiter, audits store.Audits, logger *slog.Logger, now func() time.Time) Limiter {
	return audited{l, audits, logger, now}
}

type audited struct {
	Limiter
	audits store.Audits
	logger *slog.Logger
	now    func() time.Time
}

// Ban implements [engine.Banner].
func (l audited) Ban(ctx context.Context, subject string, length time.Duration, reason string) error {
	err := l.Limiter.Ban(ctx, subject, length, reason)
	detail := store.Detail("length", length.String(), "reason", reason)
	l.record(ctx, store.AuditEntry{Action: store.BanStart, Target: subject, Detail: detail}, "banned", err)
	return err
}

// Unban implements [engine.Banner].
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

// record stores a change that took effect, if only on this server. An error of the audit log goes
// to the log only: a full disk must not prevent a ban.
func (l audited) record(ctx context.Context, a store.AuditEntry, outcome string, failure error) {
	e := entryOf(ctx)
	e.subject, e.outcome = a.Target, outcome
	if failure != nil {
		e.outcome = "failed"
		if !errors.Is(failure, failover.ErrLocalOnly) {
			return
		}
		a.Detail = strings.TrimSpace(a.Detail + ` effect="on this server, and perhaps on no other"`)
	}
	a.At, a.Actor, a.From = l.now(), e.by.Name, e.by.From
	if err := l.audits.AddAudit(context.WithoutCancel(ctx), a); err != nil {
		l.logger.ErrorContext(ctx, "cannot store an entry of the audit log", slog.String("action", a.Action),
			slog.String("subject", a.Target), slog.String("remote", e.by.From), slog.Any("error", err))
	}
}
