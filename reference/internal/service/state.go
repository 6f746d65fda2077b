package service

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/admin"
	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
	"github.com/animalstore/gatehouse/reference/internal/usage"
)

// state is what outlives a handler: when plans or deprecations change, a new
// handler goes on with it.
type state struct {
	logger  *slog.Logger
	store   store.Store
	limiter limiter
	uses    *usage.Deprecated
	saver   *usage.Saver
	checks  []admin.Check // of readiness, beside those that every server has
	closers []io.Closer   // in the order in which they were opened
}

// A limiter is what an engine has to be able to do.
type limiter interface {
	api.Limiter
	ratelimit.Banner
}

// OpenStore opens the database that the settings name.
func OpenStore(ctx context.Context, c *config.Config) (store.Store, error) {
	if c.Postgres() {
		return nil, SettingError{problem(c, "database",
			"PostgreSQL is not available in this build of petstore yet; name a SQLite file such as petstore.db")}
	}
	return sqlite.Open(ctx, c.Database, sqlite.Options{})
}

// open opens everything that is kept.
func open(ctx context.Context, c *config.Config, o Options) (_ *state, err error) {
	s := &state{logger: o.Logger, uses: usage.NewDeprecated(time.Now)}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if o.LogErr != nil {
		s.checks = append(s.checks, admin.Check{
			Name: "log", Run: func(context.Context) error { return o.LogErr() }, Advisory: true,
		})
	}
	if s.store, err = OpenStore(ctx, c); err != nil {
		return nil, err
	}
	s.closers = append(s.closers, s.store)
	tasks := []usage.Task{s.uses.Task(s.store)}
	if s.limiter, tasks, err = s.openLimiter(ctx, c, tasks); err != nil {
		return nil, err
	}
	s.saver = usage.StartSaver(o.Logger, tasks...)
	s.closers = append(s.closers, s.saver)
	return s, nil
}

// openLimiter returns the engine that the settings ask for, and adds what it wants
// to be saved to the tasks.
func (s *state) openLimiter(ctx context.Context, c *config.Config, tasks []usage.Task) (limiter, []usage.Task, error) {
	if len(c.Redis) > 0 {
		shared, err := s.openShared(c)
		if err != nil {
			return nil, nil, err
		}
		s.checks = append(s.checks, admin.Check{
			Name: "limits", Run: func(context.Context) error { return sharedState(shared) }, Advisory: true,
		})
		return shared, tasks, nil
	}
	db, err := sqlite.OpenUsage(ctx, sqlite.UsagePath(c.Database), sqlite.Options{BusyTimeout: takeover})
	switch {
	case errors.Is(err, sqlite.ErrInUse):
		// Two engines that save over each other would lose each other's usage.
		return nil, nil, problem(c, "database", "another petstore serves %s, and two cannot count usage in one place; "+
			"stop the other, or give this one a database of its own", c.Database)
	case err != nil:
		return nil, nil, err
	}
	s.closers = append(s.closers, db)
	engine, damaged, err := usage.Load(ctx, db, memory.Options{})
	if err != nil {
		return nil, nil, err
	}
	if damaged > 0 {
		s.logger.Warn("some saved usage is damaged and was left out", slog.Int("records", damaged))
	}
	return engine, append(tasks, usage.LimiterTask(engine, db, time.Now)), nil
}

// takeover is how long a server waits for the one before it to let go of the
// usage file.
const takeover = 2 * time.Second

// close closes everything in reverse, so that the saver can save once more.
func (s *state) close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i].Close())
	}
	return errors.Join(errs...)
}
