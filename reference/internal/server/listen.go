package server

import (
	"context"
	"errors"
	"net"
	"syscall"

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
