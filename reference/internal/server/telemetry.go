package server

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/admin"
	"github.com/animalstore/gatehouse/reference/internal/observe"
)

// startTelemetry sets up metrics and traces, and a log that has the IDs of traces.
func (s *server) startTelemetry(ctx context.Context) (err error) {
	if s.observer, err = observe.Start(context.WithoutCancel(ctx), s.Build.Version, s.Logger); err != nil {
		return SettingError{err}
	}
	s.Logger = slog.New(s.observer.LogHandler(s.Logger.Handler()))
	return nil
}

// readyTimeout is how long the checks may take when metrics are collected.
const readyTimeout = 2 * time.Second

// observeServer reports the server and its admin listener as metrics.
func (s *server) observeServer() error {
	return s.observer.ObserveServer(func(ctx context.Context) observe.ServerState {
		state := observe.ServerState{Ready: isReady(ctx, s.checks), Admin: s.admin.Stats()}
		c := s.settings.Load()
		if c == nil {
			return state
		}
		state.LastReloadRefused = s.reloads.Status().Error != ""
		state.SavesFail = s.saver.Err() != nil
		if s.pool != nil {
			pool := s.pool()
			state.Pool = &pool
		}
		state.API = s.api.Stats()
		state.Certificate = s.api.CertificateExpires()
		state.Sunsets = make(map[string]time.Time)
		for operation, d := range c.Deprecations {
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
func (s *server) observeLimiter(context.Context) error {
	s.limiter = observedLimiter{s.limiter, s.observer}
	err := errors.Join(s.observer.ObserveBans(s.limiter), s.observer.ObserveEngine(s.embedded))
	if s.shared != nil {
		err = errors.Join(err, s.observer.ObserveEngine(s.shared.Limiter))
	}
	if s.shared != nil && s.shared.shares != nil {
		err = errors.Join(err, s.observer.ObserveEngine(s.shared.shares))
	}
	return err
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

// Unban implements [engine.Banner].
func (l observedLimiter) Unban(ctx context.Context, subject string) (bool, error) {
	was, err := l.limiter.Unban(ctx, subject)
	if was {
		l.observer.Unbanned()
	}
	return was, err
}
