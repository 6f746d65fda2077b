package api

import (
	"context"
	"net/http"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

type usage struct {
	Plan        string       `json:"plan"`
	Quotas      []quotaUsage `json:"quotas"`
	StrikesLeft *int         `json:"strikesLeft,omitempty"`
	Ban         *ban         `json:"ban,omitempty"`
}

type quotaUsage struct {
	Limit         int64 `json:"limit"`
	WindowSeconds int64 `json:"windowSeconds"`
	Remaining     int64 `json:"remaining"`
	Reset         int64 `json:"reset"`
}

type ban struct {
	Ends int64 `json:"ends"`
}

// getUsage serves GET /v1/usage from the decision of peek, so that the body and the
// header fields agree.
func (a *api) getUsage(_ context.Context, w http.ResponseWriter, r *http.Request) error {
	d := peekedDecision(r.Context())
	if d == nil {
		return errUnavailable // the limiter failed, and OnLimiterFailure is FailOpen
	}
	body, err := encode(usageOf(d))
	if err != nil {
		return err
	}
	return represent(w, r, body, "")
}

func usageOf(d *ratelimit.Decision) usage {
	u := usage{Plan: d.Plan.Name(), Quotas: make([]quotaUsage, d.Plan.Len())}
	for i := range u.Quotas {
		q := d.Plan.Quota(i)
		u.Quotas[i] = quotaUsage{
			Limit:         q.Limit,
			WindowSeconds: int64(q.Window / time.Second),
			Remaining:     d.States[i].Remaining,
			Reset:         d.States[i].Reset,
		}
	}
	if d.StrikesLeft >= 0 {
		u.StrikesLeft = &d.StrikesLeft
	}
	if d.Outcome == ratelimit.Banned {
		u.Ban = &ban{Ends: d.BanEnds}
	}
	return u
}
