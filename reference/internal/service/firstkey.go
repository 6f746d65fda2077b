package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/keys"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// firstPlan is the plan of the first key.
const firstPlan = "free"

const firstKeyNotice = `
The database has no API key yet, so one was created, with the plan %s. It is shown only now:

    %s

Try it:

    %s

or open %s in a browser.

`

// showFirstKey creates a key if the database has never held one, and shows it once. If
// several servers start on one database at the same time, one of them does.
func (s *state) showFirstKey(ctx context.Context, c *config.Config, addr net.Addr, notice io.Writer) error {
	if !c.FirstKey {
		return nil
	}
	if _, err := c.Plans.Of(firstPlan, nil); err != nil {
		return nil // an operator with other plans creates the keys
	}
	secret, err := keys.NewSecret()
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
		s.logger.Warn("cannot check whether there is an API key; no first key was created", slog.Any("error", err))
		return nil
	case err != nil:
		return err
	}
	s.logger.Info("created the first key", slog.String("key", key.ID), slog.String("plan", key.Plan))
	_, err = fmt.Fprintf(notice, firstKeyNotice, firstPlan, secret.Reveal(), curlLine(c, addr, secret.Reveal()), docsURL(c, addr))
	if err != nil {
		s.logger.Error("cannot show the first key; create another one with petstore keys create",
			slog.String("key", key.ID), slog.Any("error", err))
	}
	return nil
}
