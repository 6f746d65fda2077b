package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

var endSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}

// untilSignal returns a context that ends with the first signal. Signals then have
// their usual effect again, so that a second one ends a process that takes too long.
func untilSignal() context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), endSignals...)
	context.AfterFunc(ctx, stop)
	return ctx
}

// defaultSignals gives signals their usual effect again.
func defaultSignals() { signal.Reset(endSignals...) }
