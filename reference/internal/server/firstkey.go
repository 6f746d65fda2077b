package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// firstPlan is the plan of the first key.
const firstPlan = "free"

const firstKeyNotice = `
The database has no API key yet, so one was created, with the plan %s. It is shown only now:

    %s

Try it:

    curl -i --noproxy '*'%s -H 'Authorization: Bearer %s' '%s/v1/pets'

or open %s/docs in a browser.

`

// showFirstKey creates a key if the database has never held one, and shows it once. If
// several servers start on one database at the same time, one of them does.
func (s *server) showFirstKey(ctx context.Context, addr net.Addr) error {
	if !s.start.FirstKey {
		return nil
	}
	if _, err := s.start.Plans.Of(firstPlan, nil); err != nil {
		return nil // an operator with other plans creates the keys
	}
	secret, err := api.NewKey()
	if err != nil {
		return err
	}
	key, err := s.store.CreateFirstKey(ctx, store.NewKey{
		Digest: secret.Digest(), LastFour: secret.LastFour(),
		Name: "first key", Owner: "first owner", Plan: firstPlan,
		Created: time.Now(),
	}, store.Actor{Name: "server"})
	switch {
	case errors.Is(err, store.ErrExists):
		return nil
	case errors.Is(err, store.ErrUnavailable):
		// The server cannot write, but it may be able to read.
		s.Logger.Warn("cannot check whether there is an API key; no first key was created", slog.Any("error", err))
		return nil
	case err != nil:
		return err
	}
	s.Logger.Info("created the first key", slog.String("key", key.ID), slog.String("plan", key.Plan))
	options, base := "", scheme(s.start)+localAddress(addr)
	if s.start.TLS() {
		options = " --insecure" // the certificate is for a name, and this for an address of this machine
	}
	_, err = fmt.Fprintf(s.Notice, firstKeyNotice, firstPlan, secret.Reveal(), options, secret.Reveal(), base, base)
	if err != nil {
		s.Logger.Error("cannot show the first key; create another one with petstore keys create",
			slog.String("key", key.ID), slog.Any("error", err))
	}
	return nil
}

// scheme returns how the URLs of the API begin.
func scheme(c *config.Config) string {
	if c.TLS() {
		return "https://"
	}
	return "http://"
}

// localAddress returns the host and port at which this machine reaches a listener.
func localAddress(addr net.Addr) string {
	ap, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ap.Addr().IsUnspecified() {
		// A listener of :: accepts IPv4 too.
		ap = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), ap.Port())
	}
	return ap.String()
}
