package service

import (
	"context"
	"net/http"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/ratelimit"
)

var errNoBansYet = apierror.New(http.StatusServiceUnavailable, apierror.CodeUnavailable, "The server is still starting. Try again later.")

// bans lists and ends bans for the admin listener. Until the server serves, it
// answers 503.
type bans struct{ *startup }

func (b bans) banner() (ratelimit.Banner, error) {
	if r := b.running.Load(); r != nil {
		return r.limiter, nil
	}
	return nil, errNoBansYet
}

// Ban implements [ratelimit.Banner].
func (b bans) Ban(ctx context.Context, subject string, length time.Duration) error {
	banner, err := b.banner()
	if err != nil {
		return err
	}
	return banner.Ban(ctx, subject, length)
}

// Unban implements [ratelimit.Banner].
func (b bans) Unban(ctx context.Context, subject string) (bool, error) {
	banner, err := b.banner()
	if err != nil {
		return false, err
	}
	return banner.Unban(ctx, subject)
}

// Bans implements [ratelimit.Banner].
func (b bans) Bans(ctx context.Context) ([]ratelimit.Ban, error) {
	banner, err := b.banner()
	if err != nil {
		return nil, err
	}
	return banner.Bans(ctx)
}
