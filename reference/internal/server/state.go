package server

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/middleware/console"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/admin"
	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/database"
	"github.com/animalstore/gatehouse/reference/internal/observe"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// state is the open database, the limiter, and what saves them.
type state struct {
	logger   *slog.Logger
	store    store.Store
	pool     func() database.Pool // of PostgreSQL; nil for a SQLite file
	limiter  limiter
	uses     *store.DeprecatedCounter
	daily    *store.DailyCounter
	saver    *store.Saver
	shared   *shared // nil: usage is counted in this process
	observer *observe.Observer

	embedded *memory.Limiter // the engine in this process, which decides if Redis does not

	console  *console.Console              // of the decisions about charged requests
	audited  admin.Limiter                 // the limiter for an operator
	settings atomic.Pointer[config.Config] // in force; set when the server serves

	closers []io.Closer // in the order in which they were opened

	redisBudget time.Duration
}

// A limiter is an engine that the server can use.
type limiter interface {
	api.Limiter
	ratelimit.Banner
}

// open opens the state.
func open(ctx context.Context, c *config.Config, o Options, p *startup) (_ *state, err error) {
	s := &state{
		logger:      o.Logger,
		uses:        store.NewDeprecatedCounter(time.Now),
		daily:       store.NewDailyCounter(time.Now),
		observer:    cmp.Or(p.observer, observe.Nothing()),
		redisBudget: cmp.Or(o.redisBudget, defaultRedisBudget),
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	var tasks []store.SaveTask
	steps := []func(context.Context, *config.Config, Options, *startup) ([]store.SaveTask, error){s.openStore, s.openLimiter}
	if len(c.Redis) == 0 && exists(c.UsagePath()) {
		// If another server holds the usage file, it also uses the database, which this one
		// must not upgrade then.
		slices.Reverse(steps)
	}
	for _, step := range steps {
		added, err := step(ctx, c, o, p)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, added...)
	}
	if err := errors.Join(s.observeLimiter(), s.openConsole(o, p)); err != nil {
		return nil, err
	}
	s.saver = store.StartSaver(o.Logger, tasks...)
	s.closers = append(s.closers, s.saver)
	return s, nil
}

// openStore opens the database, and returns the tasks that save counts there.
func (s *state) openStore(ctx context.Context, c *config.Config, o Options, p *startup) ([]store.SaveTask, error) {
	db, err := openDatabase(ctx, c, o, p)
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, db)
	s.store, s.pool = s.observer.Store(db), database.PoolOf(db)
	return []store.SaveTask{s.uses.Task(s.store), s.daily.Task(s.store)}, nil
}

// openLimiter opens the engine, and returns the task that saves its usage, if it is
// embedded.
func (s *state) openLimiter(ctx context.Context, c *config.Config, _ Options, p *startup) ([]store.SaveTask, error) {
	if len(c.Redis) == 0 {
		p.setStep("loading usage")
		task, err := s.openEmbedded(ctx, c)
		if err != nil {
			return nil, err
		}
		return []store.SaveTask{task}, nil
	}
	p.setStep("connecting to Redis")
	var err error
	if s.shared, err = s.openShared(ctx, c); err != nil {
		return nil, err
	}
	s.limiter = s.shared
	return nil, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// close closes everything in reverse order, so that the saver can save once more.
func (s *state) close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i].Close())
	}
	return errors.Join(errs...)
}
