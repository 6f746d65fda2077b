package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/mattn/go-isatty"

	"github.com/animalstore/gatehouse/reference/internal/postgres"
)

var endSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}

// untilSignal returns a context that ends with SIGINT or SIGTERM, and also when the terminal of
// the process is closed. Then these signals have their default effect again, so a second one
// ends the process immediately.
func untilSignal() context.Context {
	signals := endSignals
	if onTerminal() {
		signals = append(slices.Clip(signals), syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, stop)
	return ctx
}

// longWork calls do, whose context ends when the command is interrupted, so that do can delete
// what is not complete. Then the error says only that, unless the outcome is unknown.
func longWork[T any](ctx context.Context, do func(context.Context) (T, error)) (done T, err error) {
	ctx, stop := signal.NotifyContext(ctx, endSignals...)
	defer stop()
	done, err = do(ctx)
	if err != nil && ctx.Err() != nil && !errors.Is(err, postgres.ErrUnknown) {
		err = context.Cause(ctx)
	}
	return done, err
}

// A hangUp is the channel of SIGHUP, with which a server reloads its settings. It is nil on a
// terminal, which sends SIGHUP when it is closed.
type hangUp <-chan os.Signal

func catchHangUp() hangUp {
	if onTerminal() {
		return nil
	}
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c
}

// onTerminal reports whether the process was started on a terminal, and should end with it.
// Under nohup, which ignores SIGHUP, it should not.
func onTerminal() bool {
	return isatty.IsTerminal(os.Stdout.Fd()) && !signal.Ignored(syscall.SIGHUP)
}

// defaultSignals gives signals their default effect again.
func defaultSignals() {
	signal.Reset(endSignals...)
	signal.Reset(syscall.SIGHUP)
}
