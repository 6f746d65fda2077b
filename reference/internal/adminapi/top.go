package adminapi

import (
	"context"
	"net/http"
)

// A Top is what GET /top answers: what happened in the last seconds, and the busiest
// clients. See package activity for how exact it is.
type Top struct {
	Seconds   int          `json:"seconds"`
	Decisions Decisions    `json:"decisions"`
	PerSecond float64      `json:"per_second"` // decisions a second, over the last five seconds
	Owners    []OwnerUse   `json:"owners"`     // the busiest first
	Networks  []NetworkUse `json:"networks"`   // callers without a valid key
	Bans      *int         `json:"bans"`       // bans in force, up to five seconds ago; null: they cannot be listed
}

// Decisions are the numbers of decisions by outcome.
type Decisions struct {
	Allowed   int64 `json:"allowed"`
	Limited   int64 `json:"limited"`
	Banned    int64 `json:"banned"`
	Suspended int64 `json:"suspended"`
	Undecided int64 `json:"undecided"` // the engine failed
}

// A NetworkUse is how often a network was allowed and denied.
type NetworkUse struct {
	Network string `json:"network"`
	Allowed int64  `json:"allowed"`
	Denied  int64  `json:"denied"` // limited, banned or suspended
}

// An OwnerUse is how often an owner was allowed and denied.
type OwnerUse struct {
	Owner   string `json:"owner"`
	Allowed int64  `json:"allowed"`
	Denied  int64  `json:"denied"` // limited, banned or suspended
}

// Top returns what happened in the last minute.
func (c Client) Top(ctx context.Context) (answer Top, err error) {
	err = c.do(ctx, http.MethodGet, "/top", nil, nil, &answer)
	return answer, err
}
