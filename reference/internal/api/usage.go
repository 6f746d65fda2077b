package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/ratelimit"
)

type usage struct {
	Plan        string       `json:"plan"`
	Quotas      []quotaUsage `json:"quotas"`
	Suspended   bool         `json:"suspended,omitempty"`
	KeyQuotas   []quotaUsage `json:"keyQuotas,omitempty"`
	StrikesLeft *int         `json:"strikesLeft,omitempty"`
	Ban         *ban         `json:"ban,omitempty"`
}

type quotaUsage struct {
	Limit         int64  `json:"limit"`
	WindowSeconds int64  `json:"windowSeconds"` // of the window that is open now
	Calendar      string `json:"calendar,omitempty"`
	Remaining     int64  `json:"remaining"`
	Reset         int64  `json:"reset"`
}

type ban struct {
	Ends int64 `json:"ends"`
}

// getUsage serves GET /v1/usage from the decision of peek, so that the body and the
// header fields agree. The header fields of a key with limits of its own are those of the
// key or of its owner, and the body has both.
func (a *api) getUsage(_ context.Context, w http.ResponseWriter, r *http.Request) error {
	d := peekedDecision(r.Context())
	if d == nil {
		return errUnavailable // the limiter failed, and OnLimiterFailure is FailOpen
	}
	var key *ratelimit.Decision
	if both := requestInfoOf(r.Context()).decided; both != nil {
		d, key = &both.owner, &both.key
	}
	if p, ok := bearer.FromContext[apikey.Principal](r.Context()); ok && d.Plan == p.Limits {
		owner := p.Plan.Uncounted(1, a.Now()) // the owner is not limited, only the key
		d, key = &owner, d
	}
	body, err := encode(usageOf(d, key))
	if err != nil {
		return err
	}
	return represent(w, r, body, "")
}

// usageOf returns the body for an owner and, unless key is nil, for the limits of its key.
func usageOf(d, key *ratelimit.Decision) usage {
	u := usage{Plan: d.Plan.Name(), Quotas: quotasOf(d), Suspended: d.Outcome == ratelimit.Suspended}
	if key != nil {
		u.KeyQuotas = quotasOf(key)
	}
	if d.StrikesLeft >= 0 {
		u.StrikesLeft = &d.StrikesLeft
	}
	if d.Outcome == ratelimit.Banned {
		u.Ban = &ban{Ends: d.BanEnds}
	}
	return u
}

// calendarText is the text of a calendar window, and empty for others.
func calendarText(q ratelimit.Quota) (text string) {
	if q.Calendar() {
		_, text, _ = strings.Cut(q.String(), "/")
	}
	return text
}

func quotasOf(d *ratelimit.Decision) []quotaUsage {
	quotas := make([]quotaUsage, d.Plan.Len())
	for i := range quotas {
		q := d.Plan.Quota(i)
		quotas[i] = quotaUsage{
			Limit:         q.Limit,
			WindowSeconds: d.States[i].Reset - d.Plan.WindowStart(i, d.States[i].Reset),
			Calendar:      calendarText(q),
			Remaining:     d.States[i].Remaining,
			Reset:         d.States[i].Reset,
		}
	}
	return quotas
}
