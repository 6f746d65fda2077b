package service

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/usage"
)

// takeover is how long a server waits for the one before it to let go of the
// usage file.
const takeover = 2 * time.Second

// openEmbedded opens the engine of this process with the usage that was saved, and
// returns the task of saving it. A usage file that is damaged is renamed, so
// that the server starts without it.
func (s *state) openEmbedded(ctx context.Context, c *config.Config) (usage.Task, error) {
	path := sqlite.UsagePath(c.Database)
	task, err := s.loadEmbedded(ctx, c, path)
	if !sqlite.IsDamaged(err) && !errors.Is(err, usage.ErrDamaged) {
		return task, err
	}
	aside, asideErr := sqlite.SetAside(path, time.Now())
	if asideErr != nil {
		return usage.Task{}, errors.Join(err, asideErr)
	}
	s.logger.Warn("the usage file is damaged and was set aside; all quotas begin unused and all bans are over",
		slog.String("file", path), slog.String("renamed", aside), slog.Any("error", err))
	return s.loadEmbedded(ctx, c, path)
}

func (s *state) loadEmbedded(ctx context.Context, c *config.Config, path string) (usage.Task, error) {
	db, err := sqlite.OpenUsage(ctx, path, sqlite.Options{BusyTimeout: takeover})
	switch {
	case errors.Is(err, sqlite.ErrInUse):
		// Two engines that save over each other would lose each other's usage.
		return usage.Task{}, c.Errorf("database", "another petstore serves %s, and two cannot count usage in one place; "+
			"stop the other, or give this one a database of its own", c.Database)
	case err != nil:
		return usage.Task{}, err
	}
	engine, damaged, err := usage.Load(ctx, db, memory.Options{})
	if err != nil {
		return usage.Task{}, errors.Join(err, db.Close())
	}
	s.closers = append(s.closers, db)
	s.limiter = engine
	if damaged > 0 {
		s.logger.Warn("some saved usage is damaged and was left out", slog.Int("records", damaged))
	}
	return usage.LimiterTask(engine, db, time.Now), nil
}
