package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
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
	Burst         int64  `json:"burst,omitempty"`
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
	p := requestInfoOf(r.Context()).peeked
	if p == nil {
		return errUnavailable // the limiter failed, and FailOpen is set
	}
	body, err := encode(usageOf(p))
	if err != nil {
		return err
	}
	return represent(w, r, body, "")
}

// usageOf returns the body for an owner, and for the limits of its key if it has any.
func usageOf(p *peeked) usage {
	d := &p.caller
	u := usage{Plan: d.Plan.Name(), Quotas: quotasOf(d), Suspended: d.Outcome == ratelimit.Suspended}
	if p.key.Plan != nil {
		u.KeyQuotas = quotasOf(&p.key)
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
	if fixedwindow.IsCalendar(q.Window) {
		_, text, _ = strings.Cut(q.String(), "/")
	}
	return text
}

func quotasOf(d *ratelimit.Decision) []quotaUsage {
	quotas := make([]quotaUsage, engine.Of(d.Plan).Len())
	for i := range quotas {
		q := engine.Of(d.Plan).Quota(i)
		quotas[i] = quotaUsage{
			Limit:         q.Limit,
			WindowSeconds: d.States[i].Reset - engine.Of(d.Plan).WindowStart(i, d.States[i].Reset),
			Calendar:      calendarText(q),
			Burst:         q.Burst(),
			Remaining:     d.States[i].Remaining,
			Reset:         d.States[i].Reset,
		}
		if q.Burst() > 0 { // there are no windows
			quotas[i].WindowSeconds = int64(q.Window / time.Second)
		}
	}
	return quotas
}
