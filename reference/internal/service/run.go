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
	LogErr func() error // returns an error for readiness if the log cannot be written; nil: it always can
	Notice io.Writer    // gets the first key, which must not be in the log

	redisBudget time.Duration // zero: defaultRedisBudget
}

// adminDrain is how long the admin listener waits for its own requests, such as
// a profile that is being taken.
const adminDrain = time.Second

// Run serves until ctx ends and everything is put away.
func Run(ctx context.Context, c *config.Config, o Options) error {
	if err := checkCertificate(c); err != nil {
		return err
	}
	l, err := listen(ctx, c)
	if ctx.Err() != nil && err != nil {
		return o.endedEarly(err)
	}
	if err != nil {
		return err
	}
	return runOn(ctx, c, o, l, open)
}

// runOn is Run with listeners, which it closes, and with what opens everything that
// is kept.
func runOn(ctx context.Context, c *config.Config, o Options, l *listeners, open opener) error {
	defer l.close() // once they are served this does nothing
	p := new(startup)
	operator, err := newAdmin(c, o, p)
	if err != nil {
		return err
	}
	return serve(ctx, l, operator, func(ctx context.Context) error {
		return serveAPI(ctx, c, o, l, p, open)
	})
}

// An opener is a function like [open].
type opener func(context.Context, *config.Config, Options, *startup) (*state, error)

// serveAPI opens everything that is kept and serves the API until ctx ends. If ctx
// ends before it serves, that is no error.
func serveAPI(ctx context.Context, c *config.Config, o Options, l *listeners, p *startup, open opener) (err error) {
	s, err := open(ctx, c, o, p)
	if ctx.Err() != nil && err != nil {
		return o.endedEarly(err)
	}
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
		OnReady:    func() { logStart(o.Logger, c, l) },
	})
	if err != nil {
		return err
	}
	if err := s.showFirstKey(ctx, c, l.api.Addr(), o.Notice); err != nil && ctx.Err() == nil {
		return err
	}
	p.running.Store(&running{s, pets})
	return pets.Serve(ctx, l.api)
}

// endedEarly logs what the end of the context interrupted, whose error may be in
// words that do not tell.
func (o Options) endedEarly(err error) error {
	o.Logger.Info("stopped during startup", slog.Any("cause", err))
	return nil
}

// serve serves the admin listener while serveAPI runs, until ctx ends or one of
// them fails. The admin listener begins first and ends last, so that it can tell
// that the server starts and drains.
func serve(ctx context.Context, l *listeners, operator *server.Server, serveAPI func(context.Context) error) error {
	apiCtx, stopAPI := context.WithCancel(ctx)
	defer stopAPI()
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
		stopAPI()
		ended <- err
	}()
	err := serveAPI(apiCtx)
	stopOperator()
	return errors.Join(err, <-ended)
}

// newAdmin returns the server of the admin listener.
func newAdmin(c *config.Config, o Options, p *startup) (*server.Server, error) {
	handler, err := admin.New(admin.Config{
		Bans:   bans{p},
		Token:  c.AdminToken.Reveal(),
		Logger: o.Logger,
		Checks: p.checks(c, o),
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
		Logger:       o.Logger,
	})
}

func logStart(logger *slog.Logger, c *config.Config, l *listeners) {
	scheme := "http://"
	if c.TLS() {
		scheme = "https://"
	}
	attrs := []any{slog.String("api", scheme+l.api.Addr().String()), slog.String("database", c.Database)}
	if l.admin != nil {
		attrs = append(attrs, slog.String("admin", "http://"+l.admin.Addr().String()))
	}
	logger.Info("serving", attrs...)
}
