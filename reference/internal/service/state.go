package service

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/activity"
	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/observe"
	"github.com/animalstore/gatehouse/reference/internal/persist"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// state is the open database, the limiter, and what saves them.
type state struct {
	logger   *slog.Logger
	store    store.Store
	limiter  limiter
	uses     *persist.DeprecatedUse
	daily    *persist.DailyUse
	saver    *persist.Saver
	shared   *shared // nil: usage is counted in this process
	observer *observe.Observer

	embedded *memory.Limiter // the engine in this process, which decides if Redis does not

	activity *activity.Counter             // of the decisions about charged requests
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
		uses:        persist.NewDeprecatedUse(time.Now),
		daily:       persist.NewDailyUse(time.Now),
		activity:    activity.New(time.Now),
		observer:    cmp.Or(p.observer, observe.Nothing()),
		redisBudget: cmp.Or(o.redisBudget, defaultRedisBudget),
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	p.setStep("opening the database")
	if s.store, err = sqlite.Open(ctx, c.Database, sqlite.Options{OnUpgrade: o.logUpgrade}); err != nil {
		return nil, err
	}
	s.closers = append(s.closers, s.store)
	s.store = s.observer.Store(s.store)
	tasks := []persist.Task{s.uses.Task(s.store), s.daily.Task(s.store)}
	if len(c.Redis) > 0 {
		p.setStep("connecting to Redis")
		if s.shared, err = s.openShared(ctx, c); err != nil {
			return nil, err
		}
		s.limiter = s.shared
	} else {
		p.setStep("loading usage")
		task, err := s.openEmbedded(ctx, c)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, task)
	}
	if err := s.observeLimiter(); err != nil {
		return nil, err
	}
	s.saver = persist.StartSaver(o.Logger, tasks...)
	s.closers = append(s.closers, s.saver)
	return s, nil
}

// close closes everything in reverse order, so that the saver can save once more.
func (s *state) close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i].Close())
	}
	return errors.Join(errs...)
}
