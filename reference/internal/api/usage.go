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
	PlanUsage
	Ban *ban `json:"ban,omitempty"`
}

// A PlanUsage is what is left of a plan, in JSON.
type PlanUsage struct {
	Plan        string       `json:"plan"`
	Quotas      []QuotaUsage `json:"quotas"`
	Suspended   bool         `json:"suspended,omitempty"`
	KeyQuotas   []QuotaUsage `json:"keyQuotas,omitempty"`   // of the key that a request was sent with
	StrikesLeft *int         `json:"strikesLeft,omitempty"` // nil: the plan never bans
}

// A QuotaUsage is what is left of one quota, in JSON.
type QuotaUsage struct {
	Limit         int64 `json:"limit"`
	WindowSeconds int64 `json:"windowSeconds"` // of the window that is open now

	// Calendar is the text of a calendar window, such as "month from 17"; empty for
	// windows that always have the same length.
	Calendar string `json:"calendar,omitempty"`

	// Burst is how many requests a smooth quota admits at once, 0 for others. Remaining
	// is then what is left of it, and Reset the time at which it is whole.
	Burst     int64 `json:"burst,omitempty"`
	Remaining int64 `json:"remaining"`
	Over      int64 `json:"over,omitempty"` // the limit of a soft quota
	Reset     int64 `json:"reset"`          // Unix time in seconds
}

type ban struct {
	Ends int64 `json:"ends"`
}

// getUsage serves GET /v1/usage from the decision of peek, so that the body and the
// header fields agree. A key with limits of its own has the header fields of the
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
	answered, err := notModified(w, r, "")
	if !answered && err == nil {
		write(w, r, http.StatusOK, body)
	}
	return err
}

// usageOf returns the body for an owner, and for the limits of its key if it has any.
func usageOf(p *peeked) usage {
	u := usage{PlanUsage: PlanUsageOf(&p.caller)}
	if p.key.Plan != nil {
		u.KeyQuotas = QuotasOf(&p.key)
	}
	if p.caller.Outcome == ratelimit.Banned {
		u.Ban = &ban{Ends: p.caller.BanEnds}
	}
	return u
}

// PlanUsageOf returns what a decision says is left of its plan.
func PlanUsageOf(d *ratelimit.Decision) PlanUsage {
	u := PlanUsage{Plan: d.Plan.Name(), Quotas: QuotasOf(d), Suspended: d.Outcome == ratelimit.Suspended}
	if d.StrikesLeft >= 0 {
		u.StrikesLeft = &d.StrikesLeft
	}
	return u
}

// QuotasOf returns what a decision says is left of each quota of its plan.
func QuotasOf(d *ratelimit.Decision) []QuotaUsage {
	plan := engine.Of(d.Plan)
	quotas := make([]QuotaUsage, plan.Len())
	for i, state := range d.States[:len(quotas)] {
		q := plan.Quota(i)
		u := QuotaUsage{
			Limit: q.Limit, Burst: q.Burst(), Remaining: state.Remaining, Reset: state.Reset,
			WindowSeconds: state.Reset - plan.WindowStart(i, state.Reset),
		}
		if fixedwindow.IsCalendar(q.Window) {
			_, u.Calendar, _ = strings.Cut(q.String(), "/")
		}
		if q.Burst() > 0 { // there are no windows
			u.WindowSeconds = int64(q.Window / time.Second)
		}
		if q == q.Soft() {
			left := q.Limit - d.Used(i)
			u.Remaining, u.Over = max(left, 0), max(-left, 0)
		}
		quotas[i] = u
	}
	return quotas
}
