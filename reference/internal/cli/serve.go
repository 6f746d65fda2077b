package cli

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/logbuffer"
	"github.com/animalstore/gatehouse/reference/internal/service"
)

type serveCmd struct{ config.Flags }

// Help is shown by --help.
func (serveCmd) Help() string {
	return `Settings without a flag, such as the plans, are set in the YAML file;
petstore.example.yaml shows all settings with their defaults. A flag overrides the
environment, and the environment overrides the file.

The log goes to standard output, as text on a terminal and as JSON elsewhere. If it
is not read fast enough, the server drops lines, counts them and keeps running. If
the database has never held an API key, the server creates one and shows it once on
standard error.

On SIGHUP, and when the settings file changes, the server reads its settings again
and applies them, except those that need a restart. If the file has a mistake, the
settings in force stay, and the log says why.

On SIGTERM or SIGINT, the server finishes running requests, saves usage and stops. A
second signal stops it at once.`
}

func (c serveCmd) Run(ctx context.Context, o output, hups hangUp) error {
	source := config.NewSource(c.Flags, os.LookupEnv)
	settings, err := checked(source.Load)
	if err != nil {
		return err
	}
	// Without this, a write to a pipe without a reader would end the process.
	signal.Ignore(syscall.SIGPIPE)
	logger, buffer := newLogger(o.out)
	defer buffer.Close(flushTimeout)
	ctx, reload := hups.untilTerminalCloses(ctx, o.out)
	logged := logSignal(ctx, logger)
	err = service.Run(ctx, settings, service.Options{
		Logger: logger, LogErr: buffer.Err, Notice: o.err,
		Source: source, HangUp: reload,
	})
	logged()
	if err == nil {
		logger.Info("stopped")
	}
	return err
}

// flushTimeout bounds how long the server waits at its end for the log to be written.
const flushTimeout = 2 * time.Second

// logSignal logs why a context ends. If it has ended, wait waits until the line is
// logged.
func logSignal(ctx context.Context, logger *slog.Logger) (wait func()) {
	done := make(chan struct{})
	forget := context.AfterFunc(ctx, func() {
		defer close(done)
		logger.Info("stopping; running requests are finished first", slog.Any("cause", context.Cause(ctx)))
	})
	return func() {
		if !forget() {
			<-done
		}
	}
}

// newLogger returns a logger that writes text to a terminal and JSON to anything else,
// and the buffer that it writes through.
func newLogger(f *os.File) (*slog.Logger, *logbuffer.Writer) {
	newHandler := jsonHandler
	if isatty.IsTerminal(f.Fd()) {
		newHandler = textHandler
	}
	buffer := logbuffer.New(f, func(lines uint64) []byte {
		var b bytes.Buffer
		slog.New(newHandler(&b)).Warn("log lines were dropped because the log could not be written", slog.Uint64("lines", lines))
		return b.Bytes()
	})
	return slog.New(newHandler(buffer)), buffer
}

func textHandler(w io.Writer) slog.Handler {
	return slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: withUnit})
}

func jsonHandler(w io.Writer) slog.Handler {
	return slog.NewJSONHandler(w, &slog.HandlerOptions{ReplaceAttr: withUnit})
}

// withUnit formats durations as text such as "1.5s". JSON would have a number of
// nanoseconds without a unit.
func withUnit(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
