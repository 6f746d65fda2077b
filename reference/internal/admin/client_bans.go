package admin

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// A Ban is the ban of an owner or of a network; the other field is empty.
type Ban struct {
	Owner   string    `json:"owner,omitempty"`
	Network string    `json:"network,omitempty"`
	Ends    time.Time `json:"ends"`
	Level   int       `json:"level"` // 1 for a first ban; higher for each that followed too soon; 0 if all were made by hand
}

// A BanList is the answer of GET /bans.
type BanList struct {
	Bans []Ban `json:"bans"`
}

// A NewBan is the body of POST /bans: an owner or a network, and the length of the ban.
type NewBan struct {
	Owner   string `json:"owner,omitempty"`
	Network string `json:"network,omitempty"`
	Seconds int64  `json:"seconds"`
}

// Unbanned says whether there was a ban. Strikes are deleted in either case.
type Unbanned struct {
	Unbanned bool `json:"unbanned"`
}

// Bans returns the bans in force, those that end last first.
func (c Client) Bans(ctx context.Context) ([]Ban, error) {
	var answer BanList
	err := c.do(ctx, http.MethodGet, "/bans", nil, nil, &answer)
	return answer.Bans, err
}

// BanOwner bans an owner for whole seconds from now, and returns the ban. It replaces a
// ban that is in force.
func (c Client) BanOwner(ctx context.Context, owner string, length time.Duration) (Ban, error) {
	return c.ban(ctx, NewBan{Owner: owner, Seconds: int64(length / time.Second)})
}

// BanNetwork does the same for a network or the network of an address.
func (c Client) BanNetwork(ctx context.Context, network string, length time.Duration) (Ban, error) {
	return c.ban(ctx, NewBan{Network: network, Seconds: int64(length / time.Second)})
}

func (c Client) ban(ctx context.Context, b NewBan) (answer Ban, err error) {
	err = c.do(ctx, http.MethodPost, "/bans", nil, b, &answer)
	return answer, err
}

// UnbanOwner ends the ban of an owner and forgets its strikes. It reports whether
// there was a ban.
func (c Client) UnbanOwner(ctx context.Context, owner string) (bool, error) {
	return c.unban(ctx, "owner", owner)
}

// UnbanNetwork does the same for a network or the network of an address.
func (c Client) UnbanNetwork(ctx context.Context, network string) (bool, error) {
	return c.unban(ctx, "network", network)
}

func (c Client) unban(ctx context.Context, kind, name string) (bool, error) {
	var answer Unbanned
	err := c.do(ctx, http.MethodDelete, "/bans", url.Values{kind: {name}}, nil, &answer)
	return answer.Unbanned, err
}
