package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/admin"
	"github.com/animalstore/gatehouse/reference/internal/observe"
)

// startTelemetry sets up metrics and traces, and returns the options with a log that
// has the IDs of traces.
func (p *startup) startTelemetry(ctx context.Context, o Options) (Options, error) {
	observer, err := observe.Start(context.WithoutCancel(ctx), o.Build.Version, o.Logger)
	if err != nil {
		return o, SettingError{err}
	}
	p.observer = observer
	o.Logger = slog.New(observer.LogHandler(o.Logger.Handler()))
	return o, nil
}

// readyTimeout is how long the checks may take when metrics are collected.
const readyTimeout = 2 * time.Second

// observeServer reports the server and its admin listener as metrics.
func (p *startup) observeServer(checks []admin.Check) error {
	return p.observer.ObserveServer(func(ctx context.Context) observe.ServerState {
		state := observe.ServerState{Ready: isReady(ctx, checks), Admin: p.operator.Stats()}
		r := p.running.Load()
		if r == nil {
			return state
		}
		state.LastReloadRefused = r.reloads.Status().Error != ""
		state.SavesFail = r.saver.Err() != nil
		if r.pool != nil {
			pool := r.pool()
			state.Pool = &pool
		}
		state.API = r.pets.Stats()
		state.Certificate = r.pets.CertificateExpires()
		state.Sunsets = make(map[string]time.Time)
		for operation, d := range r.settings.Load().Deprecations {
			if !d.Sunset.IsZero() {
				state.Sunsets[operation] = d.Sunset
			}
		}
		return state
	})
}

func isReady(ctx context.Context, checks []admin.Check) bool {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for _, check := range checks {
		if !check.Advisory && check.Run(ctx) != nil {
			return false
		}
	}
	return true
}

// observeLimiter makes the limiter report what it does.
func (s *state) observeLimiter() error {
	s.limiter = observedLimiter{s.limiter, s.observer}
	err := errors.Join(s.observer.ObserveBans(s.limiter), s.observer.ObserveMemory(s.embedded))
	if s.shared != nil {
		err = errors.Join(err, s.observer.ObserveFailover(s.shared.Limiter))
	}
	if s.shared != nil && s.shared.shares != nil {
		err = errors.Join(err, s.observer.ObserveLease(s.shared.shares))
	}
	return err
}

// onDecision is called with each decision on a request that is charged.
func (s *state) onDecision(r *http.Request, c ratelimit.Caller, d ratelimit.Decision, err error) {
	s.observer.Decision(r, c, d, err)
	s.countDecision(r, c, d, err)
}

// observedLimiter measures decisions, and counts bans that an operator ends.
type observedLimiter struct {
	limiter
	observer *observe.Observer
}

// Take implements [ratelimit.Limiter].
func (l observedLimiter) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	return l.observer.Take(ctx, l.limiter, subject, plan, cost)
}

// TakeAll implements [engine.MultiTaker].
func (l observedLimiter) TakeAll(ctx context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	return l.observer.TakeAll(ctx, l.limiter, charges, decisions)
}

// Unban implements [ratelimit.Banner].
func (l observedLimiter) Unban(ctx context.Context, subject string) (bool, error) {
	was, err := l.limiter.Unban(ctx, subject)
	if was {
		l.observer.Unbanned()
	}
	return was, err
}
