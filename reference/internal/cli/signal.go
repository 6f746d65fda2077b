package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/mattn/go-isatty"
)

var endSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}

// untilSignal returns a context that ends with the first signal to end. Then these
// signals have their default effect again, so a second one ends the process at once.
func untilSignal() context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), endSignals...)
	context.AfterFunc(ctx, stop)
	return ctx
}

// A hangUp is the channel of SIGHUP, with which a server reloads its settings.
type hangUp <-chan os.Signal

func catchHangUp() hangUp {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c
}

// defaultSignals gives signals their default effect again.
func defaultSignals() {
	signal.Reset(endSignals...)
	signal.Reset(syscall.SIGHUP)
}

var errTerminalClosed = errors.New("the terminal was closed")

// untilTerminalCloses returns the signals that are left, and a context that ends when
// out was a terminal and is closed: that also sends SIGHUP.
func (h hangUp) untilTerminalCloses(ctx context.Context, out *os.File) (context.Context, <-chan os.Signal) {
	if !isatty.IsTerminal(out.Fd()) {
		return ctx, h
	}
	ctx, end := context.WithCancelCause(ctx)
	rest := make(chan os.Signal, 1)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case s := <-h:
				if !isatty.IsTerminal(out.Fd()) {
					end(errTerminalClosed)
					return
				}
				select {
				case rest <- s:
				default: // one is enough
				}
			}
		}
	}()
	return ctx, rest
}
