package cli

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/mattn/go-isatty"

	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/service"
)

type serveCmd struct{ config.Flags }

// Help is shown by --help.
func (serveCmd) Help() string {
	return `Settings that have no flag, such as the plans, are in the YAML file; all of them
with their defaults are in petstore.example.yaml. A flag counts over the
environment, the environment over the file.

The log goes to standard output, as text on a terminal and as JSON elsewhere. If the
database never held an API key, a first one is made and shown once on standard
error.

SIGTERM, SIGINT and SIGHUP end the server once the requests under way are answered
and usage is saved; a second signal ends it at once.`
}

func (c serveCmd) Run(ctx context.Context, o output) error {
	settings, err := load(config.Load, c.Flags)
	if err != nil {
		return err
	}
	logger := newLogger(o.out)
	ctx, stop := untilSignal(ctx, logger)
	defer stop()
	err = service.Run(ctx, settings, service.Options{Logger: logger, Notice: o.err})
	if err == nil {
		logger.Info("ended")
	}
	return err
}

// untilSignal returns a context that ends with the first signal. Signals then have
// their usual effect again, so that a second one ends a process that takes too
// long.
func untilSignal(ctx context.Context, logger *slog.Logger) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	forget := context.AfterFunc(ctx, func() {
		stop()
		logger.Info("ending: requests under way are finished first", slog.Any("cause", context.Cause(ctx)))
	})
	return ctx, func() { forget(); stop() }
}

// newLogger returns a log of text for people, and of JSON for everything else.
func newLogger(f *os.File) *slog.Logger {
	if isatty.IsTerminal(f.Fd()) {
		return slog.New(slog.NewTextHandler(f, nil))
	}
	return slog.New(slog.NewJSONHandler(f, nil))
}
