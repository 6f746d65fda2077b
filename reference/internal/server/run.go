package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/admin"
	"github.com/animalstore/gatehouse/reference/internal/build"
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/database"
	"github.com/animalstore/gatehouse/reference/internal/httpserver"
)

// Options are what [Run] needs in addition to the settings.
type Options struct {
	Logger   *slog.Logger
	SetLevel func(slog.Level) // changes the level of Logger
	Notice   io.Writer        // gets the first key, which must not be in the log

	// Source is read again for each value of HangUp, and when its file changes. Nil:
	// the settings do not change.
	Source *config.Source
	HangUp <-chan os.Signal

	Build build.Info // what the program was built from, for the operator

	redisBudget time.Duration // zero: defaultRedisBudget
}

// adminDrain is how long the admin listener waits for its own requests, such as a
// running profile.
const adminDrain = time.Second

// The admin listener has its own limits on connections, so that it answers while the API
// is full, and however the operator sets the limits of the API.
const (
	adminConns           = 64
	adminConnsPerNetwork = 32
)

// Run serves until ctx ends, and returns once everything is closed.
func Run(ctx context.Context, c *config.Config, o Options) error {
	if err := checkCertificate(c); err != nil {
		return err
	}
	c.LogWarning(o.Logger)
	defer reserveHeap()()
	l, err := listen(ctx, c)
	if ctx.Err() != nil && err != nil {
		return o.endedEarly(err)
	}
	if err != nil {
		return err
	}
	return runOn(ctx, c, o, l, open)
}

// runOn is Run with open listeners, which it closes, and a function that opens the
// state.
func runOn(ctx context.Context, c *config.Config, o Options, l *listeners, open opener) error {
	defer l.close() // does nothing once they are served
	manager := systemd{o.Logger}
	defer manager.keepAlive()()
	defer context.AfterFunc(ctx, manager.stopping)()
	p := new(startup)
	o, err := p.startTelemetry(ctx, o)
	if err != nil {
		return err
	}
	defer p.observer.Close()
	checks := p.checks(c, o)
	operator, err := newAdmin(c, o, p, checks)
	if err != nil {
		return err
	}
	p.operator, p.health = operator, checks
	if err := p.observeServer(checks); err != nil {
		return err
	}
	return serve(ctx, l, operator, func(ctx context.Context) error {
		return serveAPI(ctx, c, o, l, p, open)
	})
}

// An opener is a function like [open].
type opener func(context.Context, *config.Config, Options, *startup) (*state, error)

// serveAPI opens the state and serves the API until ctx ends. It returns nil if ctx ends
// before it serves.
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
	options := c.HTTP
	options.Logger = o.Logger
	options.OnReady = func() {
		logStart(o, c, l)
		systemd{o.Logger}.serving()
	}
	pets, err := httpserver.New(handler, options)
	if err != nil {
		return err
	}
	if err := s.showFirstKey(ctx, c, l.api.Addr(), o.Notice); err != nil && ctx.Err() == nil {
		return err
	}
	reloads := &reloader{source: o.Source, hangUp: o.HangUp, logger: o.Logger, setLevel: o.SetLevel, current: c, apply: func(c *config.Config) error {
		return s.apply(c, pets)
	}}
	s.settings.Store(c)
	p.running.Store(&running{s, pets, reloads})
	defer reloads.start(ctx)()
	return pets.Serve(ctx, l.api)
}

// apply makes the API's server use other settings.
func (s *state) apply(c *config.Config, pets *httpserver.Server) error {
	handler, err := s.newHandler(c)
	if err != nil {
		return err
	}
	if err := pets.Reload(handler, c.HTTP); err != nil {
		return err
	}
	s.settings.Store(c)
	return nil
}

// endedEarly logs the error of a start that the end of the context interrupted.
func (o Options) endedEarly(err error) error {
	o.Logger.Info("stopped during startup", slog.Any("cause", err))
	return nil
}

// serve serves the admin listener while serveAPI runs, until ctx ends or one of them
// fails. The admin listener begins first and ends last, so that it can report that the
// server starts and drains.
func serve(ctx context.Context, l *listeners, operator *httpserver.Server, serveAPI func(context.Context) error) error {
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
			err = nil // it cut off at most requests of the operator
		}
		stopAPI()
		ended <- err
	}()
	err := serveAPI(apiCtx)
	stopOperator()
	return errors.Join(err, <-ended)
}

// newAdmin returns the server of the admin listener.
func newAdmin(c *config.Config, o Options, p *startup, checks []admin.Check) (*httpserver.Server, error) {
	handler, err := admin.New(admin.Config{
		Server:  p.server,
		Metrics: p.observer.Metrics(),
		Token:   c.AdminToken.Reveal(),
		Logger:  o.Logger,
		Checks:  checks,
	})
	if err != nil {
		return nil, err
	}
	return httpserver.New(handler, httpserver.Options{
		MaxConns: adminConns, MaxConnsPerNetwork: adminConnsPerNetwork,
		DrainTimeout: adminDrain,
		Logger:       o.Logger,
	})
}

func logStart(o Options, c *config.Config, l *listeners) {
	attrs := []any{slog.String("api", scheme(c)+l.api.Addr().String()), slog.String("database", database.Redacted(c.Database))}
	if l.admin != nil {
		attrs = append(attrs, slog.String("admin", "http://"+l.admin.Addr().String()))
	}
	attrs = append(attrs, slog.String("version", o.Build.Version))
	if o.Build.Revision != "" {
		attrs = append(attrs, slog.String("revision", o.Build.Revision))
	}
	o.Logger.Info("serving", append(attrs, slog.String("go", o.Build.Go))...)
}

// checkCertificate checks the certificate before anything is opened, so that the error
// can name the setting.
func checkCertificate(c *config.Config) error {
	if !c.TLS() {
		return nil
	}
	if _, err := httpserver.LoadCertificate(c.HTTP.CertFile, c.HTTP.KeyFile); err != nil {
		return c.Errorf("tls_cert", "%w; set tls_cert to a PEM file with the certificate chain, and tls_key to one with its private key", err)
	}
	return nil
}

// A SettingError is an error about a setting that a retry cannot fix.
type SettingError struct{ Err error }

func (e SettingError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e SettingError) Unwrap() error { return e.Err }

// heapReserve is how much the heap of a server may grow between two collections, beyond
// the doubling that the garbage collector allows.
const heapReserve = 64 << 20

// reserveHeap makes garbage collections of a small heap rarer: with the few megabytes
// that a server needs, there are dozens in a second under load, each of which scans
// every stack. The collector runs when the heap has doubled, so it gets a large object
// that is never used. The system provides no memory for pages that are not written, and
// the collector does not read an object without pointers. The function that it returns
// releases the object.
//
// It does nothing if the operator has tuned the collector with GOGC or GOMEMLIMIT.
func reserveHeap() (release func()) {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		if os.Getenv(name) != "" {
			return func() {}
		}
	}
	reserve := make([]byte, heapReserve)
	return func() { runtime.KeepAlive(reserve) }
}

// logUpgrade logs that the database is upgraded, and where a copy of the older one is
// kept.
func (o Options) logUpgrade(u database.Upgrade) {
	from, to := slog.Int64("from", u.From), slog.Int64("to", u.To)
	if u.Copy == "" {
		o.Logger.Info("upgrading the database", slog.String("database", u.Database), from, to)
		return
	}
	o.Logger.Info("upgrading the database; a copy of the older one is kept",
		slog.String("file", u.Database), from, to, slog.String("copy", u.Copy))
}
