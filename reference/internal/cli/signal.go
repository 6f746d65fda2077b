package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

var endSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}

// untilSignal returns a context that ends with the first signal. Then signals have
// their default effect again, so a second one ends the process at once.
func untilSignal() context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), endSignals...)
	context.AfterFunc(ctx, stop)
	return ctx
}

// defaultSignals gives signals their default effect again.
func defaultSignals() { signal.Reset(endSignals...) }
