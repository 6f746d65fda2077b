package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/api"
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
func openDatabase(ctx context.Context, c *config.Config, o Options, p *startup) (store.Store, error) {
	p.setStep("opening the database")
	if c.Where("database") == "--database" && database.HasPassword(c.Database) {
		o.Logger.Warn("other users of this machine can see the password in --database; " +
			"set PETSTORE_DATABASE or PETSTORE_DATABASE_FILE instead")
	}
	options := database.Options{
		NoMigrate: c.Migrate == config.MigrateManual,
		Timeout:   c.StoreTimeout / 2, // for the connection, and as much for the answer
		OnUpgrade: o.logUpgrade,
	}
	var logged time.Time
	for {
		db, err := database.Open(ctx, c.Database, options)
		if e, ok := errors.AsType[*database.NameError](err); ok {
			return nil, SettingError{c.Errorf("database", "%w", e)}
		}
		if err == nil && !logged.IsZero() {
			o.Logger.Info("the database can be reached")
		}
		if !database.IsPostgres(c.Database) || !errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil {
			return db, err
		}
		p.setStep("waiting for the database: " + inOneLine(err))
		if time.Since(logged) >= databaseLog {
			o.Logger.Warn("cannot reach the database; the server waits until it can", slog.Any("error", err))
			logged = time.Now()
		}
		select {
		case <-time.After(databaseRetry):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// firstPlan is the plan of the first key.
const firstPlan = "free"

const firstKeyNotice = `
The database has no API key yet, so one was created, with the plan %s. It is shown only now:

    %s

Try it:

    %s

or open %s in a browser.

`

// showFirstKey creates a key if the database has never held one, and shows it once. If
// several servers start on one database at the same time, one of them does.
func (s *state) showFirstKey(ctx context.Context, c *config.Config, addr net.Addr, notice io.Writer) error {
	if !c.FirstKey {
		return nil
	}
	if _, err := c.Plans.Of(firstPlan, nil); err != nil {
		return nil // an operator with other plans creates the keys
	}
	secret, err := api.NewKey()
	if err != nil {
		return err
	}
	key, err := s.store.CreateFirstKey(ctx, store.NewKey{
		Digest: secret.Digest(), LastFour: secret.LastFour(),
		Name: "first key", Owner: "first owner", Plan: firstPlan,
		Created: time.Now(),
	}, store.Actor{Name: "server"})
	switch {
	case errors.Is(err, store.ErrExists):
		return nil
	case errors.Is(err, store.ErrUnavailable):
		// The server cannot write, but it may be able to read.
		s.logger.Warn("cannot check whether there is an API key; no first key was created", slog.Any("error", err))
		return nil
	case err != nil:
		return err
	}
	s.logger.Info("created the first key", slog.String("key", key.ID), slog.String("plan", key.Plan))
	_, err = fmt.Fprintf(notice, firstKeyNotice, firstPlan, secret.Reveal(), curlLine(c, addr, secret.Reveal()), docsURL(c, addr))
	if err != nil {
		s.logger.Error("cannot show the first key; create another one with petstore keys create",
			slog.String("key", key.ID), slog.Any("error", err))
	}
	return nil
}
