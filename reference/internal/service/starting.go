package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/admin"
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/server"
)

// progress is what the admin listener knows of the rest of the server. It answers
// from the beginning, while the rest may still be reading usage.
type progress struct {
	step    atomic.Pointer[string]  // what the server is doing until it serves
	running atomic.Pointer[running] // nil until then
}

// running are the parts of a server that serves.
type running struct {
	*state
	pets *server.Server
}

var (
	errStarting  = errors.New("starting")
	errNoBansYet = apierror.New(http.StatusServiceUnavailable, apierror.CodeUnavailable, "The server is still starting. Try again later.")
)

// enter says what the server is doing now.
func (p *progress) enter(step string) { p.step.Store(&step) }

// checks returns what readiness looks at, with these settings.
func (p *progress) checks(c *config.Config, o Options) []admin.Check {
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
		// To be replaced by another replica would lose this one's usage, too.
		check("usage", true, func(_ context.Context, r *running) error { return r.saver.Err() }),
	}
	if len(c.Redis) > 0 {
		checks = append(checks, check("limits", true, func(ctx context.Context, r *running) error { return r.shared.err(ctx) }))
	}
	if o.LogErr != nil {
		checks = append(checks, admin.Check{Name: "log", Advisory: true, Run: func(context.Context) error { return o.LogErr() }})
	}
	return checks
}

func (p *progress) serving(context.Context) error {
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

// bans is the engine's side that lists and ends bans, as soon as there is one.
type bans struct{ *progress }

func (b bans) banner() (ratelimit.Banner, error) {
	if r := b.running.Load(); r != nil {
		return r.limiter, nil
	}
	return nil, errNoBansYet
}

// Ban implements [ratelimit.Banner].
func (b bans) Ban(ctx context.Context, subject string, length time.Duration) error {
	banner, err := b.banner()
	if err != nil {
		return err
	}
	return banner.Ban(ctx, subject, length)
}

// Unban implements [ratelimit.Banner].
func (b bans) Unban(ctx context.Context, subject string) (bool, error) {
	banner, err := b.banner()
	if err != nil {
		return false, err
	}
	return banner.Unban(ctx, subject)
}

// Bans implements [ratelimit.Banner].
func (b bans) Bans(ctx context.Context) ([]ratelimit.Ban, error) {
	banner, err := b.banner()
	if err != nil {
		return nil, err
	}
	return banner.Bans(ctx)
}
