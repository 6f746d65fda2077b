package server

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/database"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// While PostgreSQL cannot be reached, a server that starts tries again at this interval,
// and logs why once in a longer one.
const (
	databaseRetry = time.Second
	databaseLog   = time.Minute
)

// openDatabase opens the database. If PostgreSQL cannot be reached, it waits until it can
// or ctx ends, so that servers and their database can start in any order. Any other error
// ends the start, because only an operator can correct it.
func (s *server) openDatabase(ctx context.Context) (store.Store, error) {
	c := s.start
	s.setStep("opening the database")
	if c.Where("database") == "--database" && database.HasPassword(c.Database) {
		s.Logger.Warn("other users of this machine can see the password in --database; " +
			"set PETSTORE_DATABASE or PETSTORE_DATABASE_FILE instead")
	}
	options := database.Options{
		NoMigrate: c.Migrate == config.MigrateManual,
		Timeout:   c.StoreTimeout / 2, // for the connection, and as much for the answer
		OnUpgrade: s.logUpgrade,
	}
	var logged time.Time
	for {
		db, err := database.Open(ctx, c.Database, options)
		if err == nil && !logged.IsZero() {
			s.Logger.Info("the database can be reached")
		}
		if !database.IsPostgres(c.Database) || !errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil {
			return db, err
		}
		s.setStep("waiting for the database: " + inOneLine(err))
		if time.Since(logged) >= databaseLog {
			s.Logger.Warn("cannot reach the database; the server waits until it can", slog.Any("error", err))
			logged = time.Now()
		}
		select {
		case <-time.After(databaseRetry):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// logUpgrade logs that an upgrade of the database begins, and where a copy of the older
// one is.
func (s *server) logUpgrade(u database.Upgrade) {
	attrs := []any{slog.String("database", u.Database), slog.Int64("from", u.From), slog.Int64("to", u.To)}
	if u.Copy != "" {
		attrs = append(attrs, slog.String("copy", u.Copy))
	}
	s.Logger.Info("upgrading the database", attrs...)
}
