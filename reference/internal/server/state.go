package server

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/middleware/console"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/admin"
	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/database"
	"github.com/animalstore/gatehouse/reference/internal/httpserver"
	"github.com/animalstore/gatehouse/reference/internal/observe"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// A server is one run of the program: its settings, what it has opened, and how far it has
// come.
type server struct {
	Options
	start *config.Config         // the settings that the server was started with
	step  atomic.Pointer[string] // what the server is doing before it serves

	// The admin listener, which answers from the beginning, uses these.
	admin    *httpserver.Server
	checks   []admin.Check // what /readyz reports
	observer *observe.Observer

	// settings are in force. They are nil until the server serves, and set after the
	// fields below, which the admin listener may read from then on.
	settings atomic.Pointer[config.Config]

	api     *httpserver.Server
	reloads *reloader

	store    store.Store
	pool     func() database.Pool // of PostgreSQL; nil for a SQLite file
	limiter  limiter
	embedded *memory.Limiter  // the engine in this process, which decides if Redis does not
	shared   *shared          // nil: usage is counted in this process
	audited  admin.Limiter    // the limiter for an operator
	console  *console.Console // of the decisions about charged requests

	uses  *store.DeprecatedCounter
	daily *store.DailyCounter
	tasks []store.SaveTask
	saver *store.Saver

	open    func(context.Context) error // openState, unless a test replaces it
	closers []func() error              // in the order in which they were opened
}

// A limiter is an engine that the server can use.
type limiter interface {
	api.Limiter
	engine.Banner
}

func newServer(c *config.Config, o Options) *server {
	o.redisBudget = cmp.Or(o.redisBudget, defaultRedisBudget)
	s := &server{
		Options: o, start: c,
		observer: observe.Nothing(),
		uses:     store.NewDeprecatedCounter(time.Now),
		daily:    store.NewDailyCounter(time.Now),
	}
	s.open = s.openState
	return s
}

// setStep says what the server is doing before it serves.
func (s *server) setStep(step string) { s.step.Store(&step) }

// openState opens the database and the limiter, and starts to save usage.
func (s *server) openState(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	steps := []func(context.Context) error{s.openStore, s.openLimiter}
	if len(s.start.Redis) == 0 && exists(s.start.UsagePath()) {
		// If another server holds the usage file, it also uses the database, which this one
		// must not upgrade then.
		slices.Reverse(steps)
	}
	for _, step := range append(steps, s.observeLimiter, s.openConsole) {
		if err := step(ctx); err != nil {
			return err
		}
	}
	s.saver = store.StartSaver(s.Logger, s.tasks...)
	s.closers = append(s.closers, s.saver.Close)
	return nil
}

// openStore opens the database.
func (s *server) openStore(ctx context.Context) error {
	db, err := s.openDatabase(ctx)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, db.Close)
	s.store, s.pool = s.observer.Store(db), database.PoolOf(db)
	s.tasks = append(s.tasks, s.uses.Task(s.store), s.daily.Task(s.store))
	return nil
}

// openLimiter opens the engine.
func (s *server) openLimiter(ctx context.Context) error {
	if len(s.start.Redis) == 0 {
		s.setStep("loading usage")
		return s.openEmbedded(ctx)
	}
	s.setStep("connecting to Redis")
	return s.openShared(ctx)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// close closes everything in reverse order, so that the saver can save once more.
func (s *server) close() error {
	var errs []error
	for _, closeOne := range slices.Backward(s.closers) {
		errs = append(errs, closeOne())
	}
	return errors.Join(errs...)
}

// takeoverTimeout is how long a server waits for the previous one to close the usage
// file.
const takeoverTimeout = 2 * time.Second

const takeoverPause = 20 * time.Millisecond

// openEmbedded opens the embedded engine with the saved usage. A usage file that cannot be
// read is renamed, and the server starts without it.
func (s *server) openEmbedded(ctx context.Context) error {
	path := s.start.UsagePath()
	engine, save, closeFile, err := openUsage(ctx, path)
	if _, system := errors.AsType[*fs.PathError](err); err != nil && !system && !errors.Is(err, ratelimit.ErrUnavailable) {
		renamed := path + ".damaged-" + time.Now().UTC().Format("20060102T150405.000Z")
		if renameErr := os.Rename(path, renamed); renameErr != nil {
			return errors.Join(err, renameErr)
		}
		s.Logger.Warn("the usage file cannot be read and was renamed; all usage and bans are lost",
			slog.String("file", path), slog.String("renamed", renamed), slog.Any("error", err))
		engine, save, closeFile, err = openUsage(ctx, path)
	}
	switch {
	case errors.Is(err, ratelimit.ErrUnavailable):
		// Two engines would overwrite each other's usage.
		return usageInUse(s.start)
	case err != nil && s.start.UsageFile != "":
		return s.start.Errorf("usage_file", "%w; name a file in a folder that the server can write to", err)
	case err != nil:
		return err
	}
	s.closers = append(s.closers, func() error {
		_ = closeFile() // the saver has reported the error of its last save
		return nil
	})
	// The first save makes the file, so that the next server opens it before the database.
	if err := save(); err != nil {
		return err
	}
	s.limiter, s.embedded = engine, engine
	s.tasks = append(s.tasks, store.SaveTask{Name: "usage and bans", Save: func(context.Context) error { return save() }})
	return nil
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

func usageInUse(c *config.Config) error {
	if c.UsageFile != "" {
		return c.Errorf("usage_file", "another petstore uses %s, and only one can count its usage there; "+
			"stop the other one, or choose another file, or share usage with --redis", c.UsageFile)
	}
	return c.Errorf("database", "another petstore serves %s, and only one can count its usage; "+
		"stop the other one, or choose another database, or share usage with --redis", c.Database)
}
