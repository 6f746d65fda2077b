package admin

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/keys"
)

// Bans returns the bans in force, those that end last first.
func (c Client) Bans(ctx context.Context) ([]Ban, error) {
	var answer bans
	err := c.do(ctx, http.MethodGet, "/bans", nil, nil, &answer)
	return answer.Bans, err
}

// BanOwner bans an owner for whole seconds from now, and returns the ban. It replaces a
// ban that is in force.
func (c Client) BanOwner(ctx context.Context, owner string, length time.Duration) (Ban, error) {
	return c.ban(ctx, newBan{Owner: owner, Seconds: int64(length / time.Second)})
}

// BanNetwork does the same for a network or the network of an address.
func (c Client) BanNetwork(ctx context.Context, network string, length time.Duration) (Ban, error) {
	return c.ban(ctx, newBan{Network: network, Seconds: int64(length / time.Second)})
}

func (c Client) ban(ctx context.Context, b newBan) (answer Ban, err error) {
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
	var answer unbanned
	err := c.do(ctx, http.MethodDelete, "/bans", url.Values{kind: {name}}, nil, &answer)
	return answer.Unbanned, err
}

// Top returns what happened in the last minute.
func (c Client) Top(ctx context.Context) (answer Top, err error) {
	err = c.do(ctx, http.MethodGet, "/top", nil, nil, &answer)
	return answer, err
}

// Usage returns the usage of an owner.
func (c Client) Usage(ctx context.Context, owner string) (answer Usage, err error) {
	err = c.do(ctx, http.MethodGet, "/usage", url.Values{"owner": {owner}}, nil, &answer)
	return answer, err
}

// Deprecations returns the deprecated operations with their use, by the sunset.
func (c Client) Deprecations(ctx context.Context) ([]Deprecation, error) {
	var answer deprecations
	err := c.do(ctx, http.MethodGet, "/deprecations", nil, nil, &answer)
	return answer.Deprecations, err
}

// Keys returns the client for the keys of the server.
func (c Client) Keys() KeysClient { return KeysClient{c} }

// A KeysClient lists and changes the keys of a server, as [keys.Manager] does in a
// database.
type KeysClient struct{ client Client }

// List returns all keys in order of their creation.
func (c KeysClient) List(ctx context.Context) ([]keys.Info, error) {
	var answer keyList
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

// State returns the state of the server.
func (c Client) State(ctx context.Context) (answer State, err error) {
	err = c.do(ctx, http.MethodGet, "/state", nil, nil, &answer)
	return answer, err
}
