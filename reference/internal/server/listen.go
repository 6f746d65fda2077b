package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/animalstore/gatehouse/reference/internal/config"
)

// listeners are the open ports of a server.
type listeners struct {
	api   net.Listener
	admin net.Listener // nil: turned off
}

func listen(ctx context.Context, c *config.Config) (*listeners, error) {
	var l listeners
	var err error
	if l.api, err = listenAt(ctx, c, "listen", c.Listen, "choose another address with --listen"); err != nil {
		return nil, err
	}
	if c.AdminListen != "" {
		if l.admin, err = listenAt(ctx, c, "admin_listen", c.AdminListen, `choose another address with --admin-listen, or "" for none`); err != nil {
			l.close()
			return nil, err
		}
	}
	return &l, nil
}

func listenAt(ctx context.Context, c *config.Config, setting, address, fix string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, c.Errorf(setting, "%s is in use by another program, perhaps another petstore, or by an outgoing connection of this machine; stop that, or %s", address, fix)
	case err != nil:
		return nil, c.Errorf(setting, "%w; %s", err, fix)
	}
	return l, nil
}

func (l *listeners) close() {
	l.api.Close()
	if l.admin != nil {
		l.admin.Close()
	}
}

// A systemd tells systemd what the server is doing, if that has set NOTIFY_SOCKET
// (sd_notify(3)). Otherwise it does nothing.
type systemd struct{ logger *slog.Logger }

func (s systemd) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		s.logger.Warn("cannot notify systemd; check NOTIFY_SOCKET", slog.Any("error", err))
	}
}

func (s systemd) serving() { s.notify(daemon.SdNotifyReady + "\nSTATUS=serving") }

// reloading is followed by serving or refused.
func (s systemd) reloading() {
	s.notify(daemon.SdNotifyReloading + "\n" + daemon.SdNotifyMonotonicUsec())
}

// refused says that the server serves with the settings from before.
func (s systemd) refused(err error) {
	s.notify(daemon.SdNotifyReady + "\nSTATUS=serving; refused the new settings: " + inOneLine(err))
}

func (s systemd) stopping() { s.notify(daemon.SdNotifyStopping + "\nSTATUS=stopping") }

// keepAlive tells systemd that the process is alive, twice in each period of its
// watchdog, until the returned function is called. WatchdogSec= turns that on.
func (s systemd) keepAlive() (stop func()) {
	period, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		s.logger.Warn("cannot use the watchdog of systemd; check WATCHDOG_USEC", slog.Any("error", err))
	}
	if period == 0 {
		return func() {}
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		tick := time.NewTicker(period / 2)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.notify(daemon.SdNotifyWatchdog)
			case <-ctx.Done():
				return
			}
		}
	}()
	return stop
}
