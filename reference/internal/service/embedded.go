package service

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/persist"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
)

// takeoverTimeout is how long a server waits for the previous one to close the usage
// file.
const takeoverTimeout = 2 * time.Second

// openEmbedded opens the embedded engine with the saved usage, and returns the task
// that saves it. A damaged usage file is renamed, and the server starts without it.
func (s *state) openEmbedded(ctx context.Context, c *config.Config) (persist.Task, error) {
	path := c.UsagePath()
	task, err := s.loadEmbedded(ctx, c, path)
	if !sqlite.IsDamaged(err) && !errors.Is(err, persist.ErrDamaged) {
		return task, err
	}
	renamed, renameErr := sqlite.RenameDamaged(path, time.Now())
	if renameErr != nil {
		return persist.Task{}, errors.Join(err, renameErr)
	}
	s.logger.Warn("the usage file is damaged and was renamed; all usage and bans are lost",
		slog.String("file", path), slog.String("renamed", renamed), slog.Any("error", err))
	return s.loadEmbedded(ctx, c, path)
}

func (s *state) loadEmbedded(ctx context.Context, c *config.Config, path string) (persist.Task, error) {
	db, err := sqlite.OpenUsage(ctx, path, sqlite.Options{BusyTimeout: takeoverTimeout})
	switch {
	case errors.Is(err, sqlite.ErrInUse):
		// Two engines would overwrite each other's usage.
		return persist.Task{}, usageInUse(c)
	case err != nil:
		return persist.Task{}, err
	}
	engine, damaged, err := persist.Load(ctx, db, memory.Options{})
	if err != nil {
		return persist.Task{}, errors.Join(err, db.Close())
	}
	s.closers = append(s.closers, db)
	s.limiter, s.embedded = engine, engine
	if damaged > 0 {
		s.logger.Warn("some saved usage is damaged and was not loaded", slog.Int("records", damaged))
	}
	return persist.LimiterTask(engine, db), nil
}

func usageInUse(c *config.Config) error {
	if c.UsageFile != "" {
		return c.Errorf("usage_file", "another petstore uses %s, and only one can count its usage there; "+
			"stop the other one, or choose another file, or share usage with --redis", c.UsageFile)
	}
	return c.Errorf("database", "another petstore serves %s, and only one can count its usage; "+
		"stop the other one, or choose another database, or share usage with --redis", c.Database)
}
