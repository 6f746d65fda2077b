package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/admin"
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/httpserver"
	"github.com/animalstore/gatehouse/reference/internal/observe"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// startup is how far the server has come. The admin listener, which answers from the
// beginning, reports it.
type startup struct {
	step    atomic.Pointer[string]  // what the server is doing before it serves
	running atomic.Pointer[running] // nil until it serves

	operator *httpserver.Server // of the admin listener; set before it serves
	health   []admin.Check      // what /readyz reports; set before it serves
	observer *observe.Observer  // nil in tests
}

// running is a server that serves.
type running struct {
	*state
	pets    *httpserver.Server
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
	if o.Source != nil {
		checks = append(checks, check("settings", true, func(_ context.Context, r *running) error {
			if refused := r.reloads.Status().Error; refused != "" {
				return errors.New(refused)
			}
			return nil
		}))
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

// takeoverTimeout is how long a server waits for the previous one to close the usage
// file.
const takeoverTimeout = 2 * time.Second

const takeoverPause = 20 * time.Millisecond

// openEmbedded opens the embedded engine with the saved usage, and returns the task
// that saves it. A usage file that cannot be read is renamed, and the server starts without it.
func (s *state) openEmbedded(ctx context.Context, c *config.Config) (store.SaveTask, error) {
	path := c.UsagePath()
	engine, save, closeFile, err := openUsage(ctx, path)
	if _, system := errors.AsType[*fs.PathError](err); err != nil && !system && !errors.Is(err, ratelimit.ErrUnavailable) {
		renamed := path + ".damaged-" + time.Now().UTC().Format("20060102T150405.000Z")
		if renameErr := os.Rename(path, renamed); renameErr != nil {
			return store.SaveTask{}, errors.Join(err, renameErr)
		}
		s.logger.Warn("the usage file cannot be read and was renamed; all usage and bans are lost",
			slog.String("file", path), slog.String("renamed", renamed), slog.Any("error", err))
		engine, save, closeFile, err = openUsage(ctx, path)
	}
	switch {
	case errors.Is(err, ratelimit.ErrUnavailable):
		// Two engines would overwrite each other's usage.
		return store.SaveTask{}, usageInUse(c)
	case err != nil:
		return store.SaveTask{}, err
	}
	s.closers = append(s.closers, usageCloser(closeFile))
	if err := save(); err != nil { // which makes a new file, so that the next server opens it first
		return store.SaveTask{}, err
	}
	s.limiter, s.embedded = engine, engine
	return store.SaveTask{Name: "usage and bans", Save: func(context.Context) error { return save() }}, nil
}

// openUsage waits for a server that is about to end, which still has the file.
func openUsage(ctx context.Context, path string) (engine *memory.Limiter, save, closeFile func() error, err error) {
	for waited := time.Duration(0); ; waited += takeoverPause {
		engine, save, closeFile, err = memory.Open(path, memory.Options{})
		if !errors.Is(err, ratelimit.ErrUnavailable) || waited >= takeoverTimeout || ctx.Err() != nil {
			return engine, save, closeFile, err
		}
		select {
		case <-time.After(takeoverPause):
		case <-ctx.Done():
		}
	}
}

// A usageCloser closes the usage file after the saver has saved to it.
type usageCloser func() error

// Close returns no error: the saver has reported that of its last save.
func (u usageCloser) Close() error {
	_ = u()
	return nil
}

func usageInUse(c *config.Config) error {
	if c.UsageFile != "" {
		return c.Errorf("usage_file", "another petstore uses %s, and only one can count its usage there; "+
			"stop the other one, or choose another file, or share usage with --redis", c.UsageFile)
	}
	return c.Errorf("database", "another petstore serves %s, and only one can count its usage; "+
		"stop the other one, or choose another database, or share usage with --redis", c.Database)
}
