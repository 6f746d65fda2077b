package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// firstPlan is the plan of the first key.
const firstPlan = "free"

const firstKeyNotice = `
There was no API key yet. This is the first one, of the plan %s. It is shown only now:

    %s

Try it:

    %s

`

// showFirstKey makes a key if there was never any, and shows it once. Of several
// servers that start at the same time on one database, one does.
func (s *state) showFirstKey(ctx context.Context, c *config.Config, addr net.Addr, notice io.Writer) error {
	if _, err := c.Plans.Of(firstPlan, nil); err != nil {
		return nil // the operator has plans of their own, and makes the keys
	}
	secret, err := NewSecret()
	if err != nil {
		return err
	}
	key, err := s.store.CreateFirstKey(ctx, store.NewKey{
		Digest: secret.Digest(), LastFour: secret.LastFour(),
		Name: "first key", Owner: "first owner", Plan: firstPlan,
		Created: time.Now(),
	})
	switch {
	case errors.Is(err, store.ErrExists):
		return nil
	case errors.Is(err, store.ErrUnavailable):
		// A server that cannot write may still read.
		s.logger.Warn("cannot check whether there is an API key, and made no first key", slog.Any("error", err))
		return nil
	case err != nil:
		return err
	}
	s.logger.Info("first key made", slog.String("key", key.ID), slog.String("plan", key.Plan))
	_, err = fmt.Fprintf(notice, firstKeyNotice, firstPlan, secret.Reveal(), curlLine(c, addr, secret.Reveal()))
	if err != nil {
		s.logger.Error("the first key could not be shown; make another with petstore keys create",
			slog.String("key", key.ID), slog.Any("error", err))
	}
	return nil
}

// NewSecret returns a new key of the form that the service knows.
func NewSecret() (apikey.Secret, error) {
	format, err := apikey.NewFormat(api.KeyPrefix)
	if err != nil {
		return apikey.Secret{}, err
	}
	return format.Generate(), nil
}
