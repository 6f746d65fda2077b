package service

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
)

// Ban implements [ratelimit.Banner], with errors that an operator can read. So do Unban
// and Bans.
func (s *shared) Ban(ctx context.Context, subject string, length time.Duration) error {
	return explainBan(s.Limiter.Ban(ctx, subject, length), "the subject is banned on this server only", "nothing was banned")
}

// Unban implements [ratelimit.Banner].
func (s *shared) Unban(ctx context.Context, subject string) (bool, error) {
	unbanned, err := s.Limiter.Unban(ctx, subject)
	return unbanned, explainBan(err, "the subject is unbanned on this server only", "no ban has ended")
}

// Bans implements [ratelimit.Banner].
func (s *shared) Bans(ctx context.Context) ([]ratelimit.Ban, error) {
	bans, err := s.Limiter.Bans(ctx)
	return bans, explainBan(err, "", "the bans cannot be listed")
}

// explainBan returns the error for an operator of a command that took effect here only,
// or nowhere.
func explainBan(err error, here, nowhere string) error {
	effect := nowhere
	switch {
	case errors.Is(err, failover.ErrLocalOnly):
		effect = here
	case !errors.Is(err, ratelimit.ErrUnavailable):
		return err
	}
	return apierror.New(http.StatusServiceUnavailable, apierror.CodeUnavailable,
		"Redis cannot be used, so "+effect+". Repeat the request when Redis can be used again.").Wrap(err)
}
