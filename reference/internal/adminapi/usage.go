package adminapi

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// A Usage is what GET /usage answers about one owner.
type Usage struct {
	Owner string      `json:"owner"`
	Keys  int         `json:"keys"`          // active keys
	Plans []PlanUsage `json:"plans"`         // of the active keys, each once
	Ban   *BanEnd     `json:"ban,omitempty"` // nil: not banned
	Days  []Day       `json:"days"`          // the days of the last 90 with a request, the oldest first

	Limited []KeyUsage `json:"limited,omitempty"` // active keys with limits of their own
}

// A PlanUsage is what is left for a key of one plan. All keys of an owner share the usage,
// so the plans of an owner differ only in their limits.
type PlanUsage struct {
	Plan        string       `json:"plan"`
	Quotas      []QuotaUsage `json:"quotas,omitempty"`
	Suspended   bool         `json:"suspended,omitempty"`
	Unlimited   bool         `json:"unlimited,omitempty"`
	StrikesLeft *int         `json:"strikesLeft,omitempty"` // nil: the plan never bans
	Error       string       `json:"error,omitempty"`       // why requests with such a key cannot be served
}

// A KeyUsage is what is left of the limits of one key alone.
type KeyUsage struct {
	ID     string       `json:"id"`
	Name   string       `json:"name"`
	Quotas []QuotaUsage `json:"quotas"`
}

// A QuotaUsage is what is left of one quota.
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
	Reset     int64 `json:"reset"` // Unix time in seconds
}

// A BanEnd is the end of a ban.
type BanEnd struct {
	Ends time.Time `json:"ends"`
}

// A Day has the charged requests of one UTC day.
type Day struct {
	Day     string `json:"day"` // such as 2026-11-22
	Allowed int64  `json:"allowed"`
	Denied  int64  `json:"denied"` // limited or banned
}

// Usage returns the usage of an owner.
func (c Client) Usage(ctx context.Context, owner string) (answer Usage, err error) {
	err = c.do(ctx, http.MethodGet, "/usage", url.Values{"owner": {owner}}, nil, &answer)
	return answer, err
}
