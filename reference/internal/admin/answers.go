package admin

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/keys"
)

// An AuditEntry is one entry of the audit log.
type AuditEntry struct {
	ID     int64     `json:"id"`
	At     time.Time `json:"at"`
	Actor  string    `json:"actor"`
	From   string    `json:"from,omitempty"`
	Action string    `json:"action"`
	Target string    `json:"target"`
	Detail string    `json:"detail,omitempty"`
}

// An AuditLog is the answer of GET /audit.
type AuditLog struct {
	Entries []AuditEntry `json:"entries"`
}

// A Deprecation is a deprecated operation, and the owners that have used it.
type Deprecation struct {
	Operation string          `json:"operation"`           // operationId
	Since     *time.Time      `json:"since,omitempty"`     // nil: the settings do not deprecate it any more
	Sunset    *time.Time      `json:"sunset,omitempty"`    // nil: it is not known when it is removed
	DaysLeft  *int            `json:"daysLeft,omitempty"`  // until the sunset, rounded up; 0 from the sunset on
	Successor string          `json:"successor,omitempty"` // what to call instead
	Owners    []DeprecatedUse `json:"owners"`              // those with the most requests first
}

// A DeprecatedUse is how an owner uses a deprecated operation.
type DeprecatedUse struct {
	Owner    string    `json:"owner"`
	Requests int64     `json:"requests"` // of all time
	Last     time.Time `json:"last"`     // the latest of them
	PerDay   float64   `json:"perDay"`   // requests a day in the last seven, of which today is one
}

// A DeprecationList is the answer of GET /deprecations.
type DeprecationList struct {
	Deprecations []Deprecation `json:"deprecations"`
}

// Deprecations returns the deprecated operations with their use, by the sunset.
func (c Client) Deprecations(ctx context.Context) ([]Deprecation, error) {
	var answer DeprecationList
	err := c.do(ctx, http.MethodGet, "/deprecations", nil, nil, &answer)
	return answer.Deprecations, err
}

// A KeyList is the answer of GET /keys.
type KeyList struct {
	Keys []keys.Info `json:"keys"`
}

// Keys returns the client for the keys of the server.
func (c Client) Keys() KeysClient { return KeysClient{c} }

// A KeysClient lists and changes the keys of a server, as [keys.Manager] does in a
// database.
type KeysClient struct{ client Client }

// List returns all keys in order of their creation.
func (c KeysClient) List(ctx context.Context) ([]keys.Info, error) {
	var answer KeyList
	err := c.client.do(ctx, http.MethodGet, "/keys", nil, nil, &answer)
	return answer.Keys, err
}

// Create creates a key.
func (c KeysClient) Create(ctx context.Context, n keys.New) (answer keys.Issued, err error) {
	err = c.client.do(ctx, http.MethodPost, "/keys", nil, n, &answer)
	return answer, err
}

// Revoke revokes a key.
func (c KeysClient) Revoke(ctx context.Context, id string) (answer keys.Revoked, err error) {
	err = c.client.do(ctx, http.MethodDelete, "/keys/"+url.PathEscape(id), nil, nil, &answer)
	return answer, err
}

// Rotate replaces a key by a new one.
func (c KeysClient) Rotate(ctx context.Context, id string, r keys.Replacement) (answer keys.Rotated, err error) {
	err = c.client.do(ctx, http.MethodPost, "/keys/"+url.PathEscape(id)+"/rotate", nil, r, &answer)
	return answer, err
}

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
	Plan        string           `json:"plan"`
	Quotas      []api.QuotaUsage `json:"quotas,omitempty"`
	Suspended   bool             `json:"suspended,omitempty"`
	Unlimited   bool             `json:"unlimited,omitempty"`
	StrikesLeft *int             `json:"strikesLeft,omitempty"` // nil: the plan never bans
	Error       string           `json:"error,omitempty"`       // why requests with such a key cannot be served
}

// A KeyUsage is what is left of the limits of one key alone.
type KeyUsage struct {
	ID     string           `json:"id"`
	Name   string           `json:"name"`
	Quotas []api.QuotaUsage `json:"quotas"`
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

// A Top is what GET /top answers: what happened in the last seconds, and the busiest
// clients. See observe.Activity for how exact it is.
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
