package service

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/admin"
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/server"
)

// Options are what [Run] needs beside the settings.
type Options struct {
	Logger *slog.Logger
	LogErr func() error // tells readiness whether the log can be written; nil: it always can
	Notice io.Writer    // gets the first key, for the person who starts the server
}

// adminDrain is how long the admin listener waits for its own requests, such as
// a profile that is being taken.
const adminDrain = time.Second

// Run serves until ctx ends and everything is put away.
func Run(ctx context.Context, c *config.Config, o Options) (err error) {
	l, err := listen(ctx, c)
	if err != nil {
		return err
	}
	defer l.close() // once they are served this does nothing
	s, err := open(ctx, c, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()

	handler, err := s.newHandler(c)
	if err != nil {
		return err
	}
	pets, err := server.New(handler, server.Options{
		CertFile: c.TLSCert, KeyFile: c.TLSKey,
		TrustedProxies: c.TrustedProxies,
		MaxConns:       c.MaxConnections, MaxConnsPerNetwork: c.MaxConnectionsPerNetwork,
		DrainDelay: c.DrainDelay,
		Logger:     o.Logger,
	})
	if err != nil {
		return err
	}
	operator, err := s.newAdmin(c, pets)
	if err != nil {
		return err
	}
	if err := s.showFirstKey(ctx, c, l.api.Addr(), o.Notice); err != nil {
		return err
	}
	logStart(o.Logger, c, l)
	return serve(ctx, l, pets, operator)
}

// serve serves both listeners until ctx ends or one of them fails. The admin
// listener ends last, so that it can tell that the server drains.
func serve(ctx context.Context, l *listeners, pets, operator *server.Server) error {
	petsCtx, stopPets := context.WithCancel(ctx)
	defer stopPets()
	operatorCtx, stopOperator := context.WithCancel(context.WithoutCancel(ctx))
	defer stopOperator()

	ended := make(chan error, 1)
	go func() {
		if l.admin == nil {
			ended <- nil
			return
		}
		err := operator.Serve(operatorCtx, l.admin)
		if operatorCtx.Err() != nil {
			err = nil // was told to end; what it cut off was the operator's own
		}
		stopPets()
		ended <- err
	}()
	err := pets.Serve(petsCtx, l.api)
	stopOperator()
	return errors.Join(err, <-ended)
}

// newAdmin returns the server of the admin listener.
func (s *state) newAdmin(c *config.Config, pets *server.Server) (*server.Server, error) {
	handler, err := admin.New(admin.Config{
		Bans:   s.limiter,
		Token:  c.AdminToken.Reveal(),
		Logger: s.logger,
		Checks: append([]admin.Check{
			{Name: "server", Run: func(context.Context) error { return serving(pets) }},
			{Name: "database", Run: s.store.Ping},
			// To be replaced by another replica would lose this one's usage, too.
			{Name: "usage", Run: func(context.Context) error { return s.saver.Err() }, Advisory: true},
		}, s.checks...),
	})
	if err != nil {
		return nil, err
	}
	return server.New(handler, server.Options{
		// Profiles and health checks of a private network; see the check of
		// admin_listen in the settings.
		PlainHTTP: c.AdminToken != "",
		MaxConns:  c.MaxConnections, MaxConnsPerNetwork: c.MaxConnectionsPerNetwork,
		DrainTimeout: adminDrain,
		Logger:       s.logger,
	})
}

var errDraining = errors.New("starting or draining")

func serving(s *server.Server) error {
	if !s.Ready() {
		return errDraining
	}
	return nil
}

func logStart(logger *slog.Logger, c *config.Config, l *listeners) {
	scheme := "http://"
	if c.TLS() {
		scheme = "https://"
	}
	attrs := []any{slog.String("api", scheme+l.api.Addr().String()), slog.String("database", databaseName(c))}
	if l.admin != nil {
		attrs = append(attrs, slog.String("admin", "http://"+l.admin.Addr().String()))
	}
	logger.Info("serving", attrs...)
}

// databaseName keeps the password in a URL out of the log.
func databaseName(c *config.Config) string {
	if c.Postgres() {
		return "PostgreSQL"
	}
	return c.Database
}
