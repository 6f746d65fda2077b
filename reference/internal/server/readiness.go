package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/animalstore/gatehouse/reference/internal/admin"
)

var errStarting = errors.New("starting")

// readiness returns the checks of /readyz.
func (s *server) readiness() []admin.Check {
	check := func(name string, advisory bool, run func(context.Context) error) admin.Check {
		return admin.Check{Name: name, Advisory: advisory, Run: func(ctx context.Context) error {
			if s.settings.Load() == nil {
				return errStarting
			}
			return run(ctx)
		}}
	}
	checks := []admin.Check{
		{Name: "server", Run: s.serving},
		check("database", false, func(ctx context.Context) error { return s.store.Ping(ctx) }),
		// Another replica does not have this usage either.
		check("usage", true, func(context.Context) error { return s.saver.Err() }),
	}
	if len(s.start.Redis) > 0 {
		checks = append(checks, check("limits", true, func(ctx context.Context) error { return s.shared.err(ctx) }))
	}
	if s.Source != nil {
		checks = append(checks, check("settings", true, func(context.Context) error {
			if refused := s.reloads.Status().Error; refused != "" {
				return errors.New(refused)
			}
			return nil
		}))
	}
	return checks
}

func (s *server) serving(context.Context) error {
	switch {
	case s.settings.Load() == nil:
		if step := s.step.Load(); step != nil {
			return fmt.Errorf("%w: %s", errStarting, *step)
		}
		return errStarting
	case !s.api.Ready():
		return errors.New("starting or draining")
	}
	return nil
}
