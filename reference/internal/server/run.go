package server

import (
	"bytes"
	"context"
	"crypto/tls"
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

	// Source is read again for each value of HangUp, and when its file or the certificate
	// changes. Nil: the settings do not change.
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
	if _, err := readCertificate(c); err != nil { // before anything is opened
		return err
	}
	c.LogWarning(o.Logger)
	defer reserveHeap()()
	s := newServer(c, o)
	l, err := listen(ctx, c)
	if err != nil {
		return s.startFailed(ctx, err)
	}
	return s.run(ctx, l)
}

// run is Run with open listeners, which it closes.
func (s *server) run(ctx context.Context, l *listeners) (err error) {
	defer l.close() // does nothing once they are served
	if err := s.startTelemetry(ctx); err != nil {
		return err
	}
	defer s.observer.Close()
	s.checks = s.readiness()
	if s.admin, err = s.newAdmin(); err != nil {
		return err
	}
	if err := s.observeServer(); err != nil {
		return err
	}
	return s.serve(ctx, l)
}

// serve serves the admin listener while serveAPI runs, until ctx ends or one of them
// fails. The admin listener begins first and ends last, so that it can report that the
// server starts and drains.
func (s *server) serve(ctx context.Context, l *listeners) error {
	apiCtx, stopAPI := context.WithCancel(ctx)
	defer stopAPI()
	adminCtx, stopAdmin := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAdmin()

	ended := make(chan error, 1)
	go func() {
		if l.admin == nil {
			ended <- nil
			return
		}
		err := s.admin.Serve(adminCtx, l.admin)
		if adminCtx.Err() != nil {
			err = nil // it cut off at most requests of the operator
		}
		stopAPI()
		ended <- err
	}()
	err := s.serveAPI(apiCtx, l)
	stopAdmin()
	return errors.Join(err, <-ended)
}

// serveAPI opens the state and serves the API until ctx ends. It returns nil if ctx ends
// before it serves.
func (s *server) serveAPI(ctx context.Context, l *listeners) (err error) {
	if err := s.open(ctx); err != nil {
		return s.startFailed(ctx, err)
	}
	defer func() { err = errors.Join(err, s.close()) }()
	handler, err := s.newHandler(s.start)
	if err != nil {
		return err
	}
	options := s.start.HTTP
	options.Logger = s.Logger
	options.OnReady = func() { s.logStart(l) }
	s.reloads = &reloader{source: s.Source, hangUp: s.HangUp, logger: s.Logger, setLevel: s.SetLevel, current: s.start, wanted: s.start, apply: s.apply}
	if s.reloads.certificate, err = readCertificate(s.start); err != nil {
		return err
	}
	if s.api, err = httpserver.New(handler, options); err != nil {
		return err
	}
	if err := s.showFirstKey(ctx, l.api.Addr()); err != nil && ctx.Err() == nil {
		return err
	}
	s.settings.Store(s.start)
	defer s.reloads.start(ctx)()
	return s.api.Serve(ctx, l.api)
}

// apply makes the API's server use other settings.
func (s *server) apply(c *config.Config) error {
	handler, err := s.newHandler(c)
	if err != nil {
		return err
	}
	if err := s.api.Reload(handler, c.HTTP); err != nil {
		return err
	}
	s.settings.Store(c)
	return nil
}

// startFailed returns the error of a start, or logs it if the end of ctx is its cause.
func (s *server) startFailed(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	s.Logger.Info("stopped during startup", slog.Any("cause", err))
	return nil
}

// newAdmin returns the server of the admin listener.
func (s *server) newAdmin() (*httpserver.Server, error) {
	handler, err := admin.New(admin.Config{
		Server:  s.shown,
		Metrics: s.observer.Metrics(),
		Token:   s.start.AdminToken,
		Logger:  s.Logger,
		Checks:  s.checks,
	})
	if err != nil {
		return nil, err
	}
	return httpserver.New(handler, httpserver.Options{
		MaxConns: adminConns, MaxConnsPerNetwork: adminConnsPerNetwork,
		DrainTimeout: adminDrain,
		Logger:       s.Logger,
	})
}

func (s *server) logStart(l *listeners) {
	attrs := []any{slog.String("api", scheme(s.start)+l.api.Addr().String()), slog.String("database", database.Redacted(s.start.Database))}
	if l.admin != nil {
		attrs = append(attrs, slog.String("admin", "http://"+l.admin.Addr().String()))
	}
	attrs = append(attrs, slog.String("version", s.Build.Version))
	if s.Build.Revision != "" {
		attrs = append(attrs, slog.String("revision", s.Build.Revision))
	}
	s.Logger.Info("serving", append(attrs, slog.String("go", s.Build.Go))...)
}

// readCertificate returns a text that changes when the certificate changes, or the error in
// reading it. Without TLS the text is empty. The error names the setting.
func readCertificate(c *config.Config) (state string, err error) {
	if !c.TLS() {
		return "", nil
	}
	pair, err := tls.LoadX509KeyPair(c.HTTP.CertFile, c.HTTP.KeyFile)
	if err != nil {
		err = c.Errorf("tls_cert", "%w; set tls_cert to a PEM file with the certificate chain, and tls_key to one with its private key", err)
		return err.Error(), err
	}
	return string(bytes.Join(pair.Certificate, nil)), nil
}

// A SettingError is an error about a setting that a retry cannot fix.
type SettingError struct{ error }

// Unwrap returns what is wrong with the setting.
func (e SettingError) Unwrap() error { return e.error }

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
