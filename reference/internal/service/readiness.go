package service

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/animalstore/gatehouse/reference/internal/admin"
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/observe"
	"github.com/animalstore/gatehouse/reference/internal/server"
)

// startup is how far the server has come. The admin listener, which answers from the
// beginning, reports it.
type startup struct {
	step    atomic.Pointer[string]  // what the server is doing before it serves
	running atomic.Pointer[running] // nil until it serves

	operator *server.Server    // of the admin listener; set before it serves
	observer *observe.Observer // nil in tests
}

// running is a server that serves.
type running struct {
	*state
	pets    *server.Server
	reloads *reloader
}

var errStarting = errors.New("starting")

// setStep says what the server is doing before it serves.
func (p *startup) setStep(step string) { p.step.Store(&step) }

// checks returns the checks of /readyz.
func (p *startup) checks(c *config.Config, o Options) []admin.Check {
	check := func(name string, advisory bool, run func(context.Context, *running) error) admin.Check {
		return admin.Check{Name: name, Advisory: advisory, Run: func(ctx context.Context) error {
			r := p.running.Load()
			if r == nil {
				return errStarting
			}
			return run(ctx, r)
		}}
	}
	checks := []admin.Check{
		{Name: "server", Run: p.serving},
		check("database", false, func(ctx context.Context, r *running) error { return r.store.Ping(ctx) }),
		// Another replica does not have this usage either.
		check("usage", true, func(_ context.Context, r *running) error { return r.saver.Err() }),
	}
	if len(c.Redis) > 0 {
		checks = append(checks, check("limits", true, func(ctx context.Context, r *running) error { return r.shared.err(ctx) }))
	}
	if o.Log != nil {
		checks = append(checks, admin.Check{Name: "log", Advisory: true, Run: func(context.Context) error { return o.Log.Err() }})
	}
	return checks
}

func (p *startup) serving(context.Context) error {
	r := p.running.Load()
	switch {
	case r != nil && r.pets.Ready():
		return nil
	case r != nil:
		return errors.New("starting or draining")
	}
	if step := p.step.Load(); step != nil {
		return fmt.Errorf("%w: %s", errStarting, *step)
	}
	return errStarting
}
