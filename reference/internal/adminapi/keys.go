package adminapi

import (
	"context"
	"net/http"
	"net/url"

	"github.com/animalstore/gatehouse/reference/internal/keys"
)

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
