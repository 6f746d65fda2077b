package cli

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/mattn/go-isatty"
)

var endSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}

// untilSignal returns a context that ends with SIGINT or SIGTERM, and also when the terminal of
// the process is closed. Then these signals have their default effect again, so a second one
// ends the process at once.
func untilSignal() context.Context {
	signals := endSignals
	if onTerminal() {
		signals = append(slices.Clip(signals), syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, stop)
	return ctx
}

// untilInterrupted returns a context that ends with SIGINT or SIGTERM, or when the terminal of
// the command is closed, so that the command can delete what is not complete. A command under
// nohup goes on without its terminal.
func untilInterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	signals := endSignals
	if !hangUpIgnored {
		signals = append(slices.Clip(signals), syscall.SIGHUP)
	}
	return signal.NotifyContext(ctx, signals...)
}

// hangUpIgnored says that the process was started to ignore SIGHUP, as by nohup.
var hangUpIgnored = signal.Ignored(syscall.SIGHUP)

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
func onTerminal() bool { return isatty.IsTerminal(os.Stdout.Fd()) && !hangUpIgnored }

// defaultSignals gives signals their default effect again.
func defaultSignals() {
	signal.Reset(endSignals...)
	signal.Reset(syscall.SIGHUP)
}
