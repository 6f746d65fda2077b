package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/reference/internal/keys"
)

// A Client calls the admin listener of a running server.
type Client struct {
	Addr  string // host and port of the listener
	Token string // its token; empty: the client sends none
}

var (
	// ErrToken means that the server requires a token, or another one.
	ErrToken = errors.New("the server requires its admin token")
	// ErrNoAnswer means that no server answers.
	ErrNoAnswer = errors.New("no server answers")
)

// clientTimeout bounds one call.
const clientTimeout = 10 * time.Second

// healthTimeout bounds GET /healthz, which the server answers at once. With the start of the
// command it is less than two seconds, the timeout of some health checks.
const healthTimeout = 1500 * time.Millisecond

// maxAnswer bounds the body of a response; a ban or a key has a few hundred bytes.
const maxAnswer = 1 << 30

// Health returns nil if the process answers GET /healthz. No token is needed.
func (c Client) Health(ctx context.Context) error {
	hangs := fmt.Errorf("no response within %v; the server may hang", healthTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, healthTimeout, hangs)
	defer cancel()
	got, err := c.send(ctx, http.MethodGet, "/healthz", nil)
	if err == nil && got.code != http.StatusOK {
		err = c.errStatus(got)
	}
	return err
}

// Readiness returns what the server checks before it reports that it is ready. No token
// is needed. The checks take up to three seconds.
func (c Client) Readiness(ctx context.Context) (r Readiness, err error) {
	ctx, cancel := context.WithTimeout(ctx, clientTimeout)
	defer cancel()
	got, err := c.send(ctx, http.MethodGet, "/readyz", nil)
	if err == nil && (json.Unmarshal(got.body, &r) != nil || r.Checks == nil) {
		err = c.errStatus(got)
	}
	return r, err
}

// Usage returns the usage of an owner.
func (c Client) Usage(ctx context.Context, owner string) (Usage, error) {
	return call[Usage](ctx, c, http.MethodGet, "/usage?"+url.Values{"owner": {owner}}.Encode(), nil)
}

// Deprecations returns the deprecated operations with their use, by the sunset.
func (c Client) Deprecations(ctx context.Context) ([]Deprecation, error) {
	answer, err := call[struct{ Deprecations []Deprecation }](ctx, c, http.MethodGet, "/deprecations", nil)
	return answer.Deprecations, err
}

// Bans returns the bans in force, those that end last first.
func (c Client) Bans(ctx context.Context) ([]Ban, error) {
	answer, err := call[struct{ Bans []Ban }](ctx, c, http.MethodGet, "/bans", nil)
	return answer.Bans, err
}

// Ban bans an owner or a network, and returns the ban. It replaces a ban that is in force.
func (c Client) Ban(ctx context.Context, b NewBan) (Ban, error) {
	return call[Ban](ctx, c, http.MethodPost, "/bans", b)
}

// Unban ends the ban of an owner, or of the network of an address, and forgets its strikes.
// The other argument is empty. It reports whether there was a ban.
func (c Client) Unban(ctx context.Context, owner, network string) (bool, error) {
	query := url.Values{"owner": {owner}}
	if owner == "" {
		query = url.Values{"network": {network}}
	}
	answer, err := call[struct{ Unbanned bool }](ctx, c, http.MethodDelete, "/bans?"+query.Encode(), nil)
	return answer.Unbanned, err
}

// Keys returns the client for the keys of the server.
func (c Client) Keys() KeysClient { return KeysClient{c} }

// A KeysClient lists and changes the keys of a server, as [keys.Manager] does in a
// database.
type KeysClient struct{ client Client }

// List returns all keys in order of their creation.
func (c KeysClient) List(ctx context.Context) ([]keys.Info, error) {
	answer, err := call[struct{ Keys []keys.Info }](ctx, c.client, http.MethodGet, "/keys", nil)
	return answer.Keys, err
}

// Create creates a key.
func (c KeysClient) Create(ctx context.Context, n keys.New) (keys.Issued, error) {
	return call[keys.Issued](ctx, c.client, http.MethodPost, "/keys", n)
}

// Revoke revokes a key.
func (c KeysClient) Revoke(ctx context.Context, id string) (keys.Revoked, error) {
	return call[keys.Revoked](ctx, c.client, http.MethodDelete, "/keys/"+url.PathEscape(id), nil)
}

// Rotate replaces a key by a new one.
func (c KeysClient) Rotate(ctx context.Context, id string, r keys.Replacement) (keys.Rotated, error) {
	return call[keys.Rotated](ctx, c.client, http.MethodPost, "/keys/"+url.PathEscape(id)+"/rotate", r)
}

// call sends a request, with a body in JSON unless in is nil, and returns the answer.
func call[T any](ctx context.Context, c Client, method, target string, in any) (answer T, err error) {
	ctx, cancel := context.WithTimeout(ctx, clientTimeout)
	defer cancel()
	got, err := c.send(ctx, method, target, in)
	if err != nil {
		return answer, err
	}
	switch got.code {
	case http.StatusOK, http.StatusCreated:
		if json.Unmarshal(got.body, &answer) != nil {
			err = fmt.Errorf("%s did not answer as a petstore does; check that it is the admin listener", c.Addr)
		}
		return answer, err
	case http.StatusUnauthorized:
		return answer, ErrToken
	}
	var refusal struct {
		Code    apierror.Code
		Message string
	}
	if json.Unmarshal(got.body, &refusal) == nil && refusal.Message != "" && refusal.Code != apierror.CodeNotFound {
		return answer, fmt.Errorf("%s answered %s: %s", c.Addr, got.status, refusal.Message)
	}
	return answer, c.errStatus(got)
}

// A reply is a response that was read.
type reply struct {
	code   int
	status string // with the phrase
	body   []byte
}

func (c Client) errStatus(got reply) error {
	return fmt.Errorf("%s answered %s; check that it is the admin listener", c.Addr, got.status)
}

// send sends a request, and reads the response.
func (c Client) send(ctx context.Context, method, target string, in any) (reply, error) {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return reply{}, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+reachable(c.Addr)+target, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}
	// A transport without a proxy: a proxy would get the token.
	direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: refuseRedirect}
	resp, err := direct.Do(r)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // the message has the address already
		}
		return reply{}, fmt.Errorf("%w at %s: %w", ErrNoAnswer, c.Addr, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return reply{}, fmt.Errorf("cannot read the response of %s: %w", c.Addr, err)
	}
	return reply{resp.StatusCode, resp.Status, answer}, nil
}

func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// reachable replaces an unspecified address, such as 0.0.0.0, by a loopback address.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip != nil && ip.To4() == nil {
			host = "::1"
		}
	}
	return net.JoinHostPort(host, port)
}
