package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

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

// untilInterrupted returns a context that ends with the first signal to end, or when the
// terminal of the command is closed, so that the command can delete what is not complete.
// A command under nohup goes on without its terminal.
func untilInterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	signals := endSignals
	if !hangUpIgnored {
		signals = append(slices.Clip(signals), syscall.SIGHUP)
	}
	return signal.NotifyContext(ctx, signals...)
}

// hangUpIgnored says that the process was started to ignore SIGHUP, as by nohup.
var hangUpIgnored = signal.Ignored(syscall.SIGHUP)

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
// the terminal of the process is closed: that also sends SIGHUP.
func (h hangUp) untilTerminalCloses(ctx context.Context, out *os.File) (context.Context, <-chan os.Signal) {
	if !hasTerminal(out) {
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
				time.Sleep(terminalDelay)
				if !hasTerminal(out) {
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

// terminalDelay is longer than a terminal exists after it has sent SIGHUP.
const terminalDelay = 100 * time.Millisecond

// hasTerminal reports whether out is a terminal and the process belongs to one.
func hasTerminal(out *os.File) bool {
	if !isatty.IsTerminal(out.Fd()) {
		return false
	}
	f, err := os.Open("/dev/tty") // fails without a controlling terminal
	if err != nil {
		return false
	}
	f.Close()
	return true
}
