package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/animalstore/gatehouse/apierror"
)

// A Client calls the admin listener of a running server. Its errors say what to do, or have
// the text that the server answered with.
//
//	client := admin.Client{Addr: "127.0.0.1:9090", Token: token}
//	bans, err := client.Bans(ctx)
type Client struct {
	Addr  string // host and port of the listener; an unspecified host is this machine
	Token string // its token; empty: the client sends none
}

// clientTimeout bounds one call. The checks of /readyz take up to three seconds.
const clientTimeout = 10 * time.Second

// healthTimeout bounds GET /healthz, which the server answers immediately. With the start of the
// command it is less than two seconds, the timeout of some health checks.
const healthTimeout = 1500 * time.Millisecond

// maxAnswer bounds the body of a response, in bytes: a list of some million bans.
const maxAnswer = 1 << 30

// Health returns nil if the process answers GET /healthz. No token is needed.
func (c Client) Health(ctx context.Context) error {
	got, err := c.send(ctx, healthTimeout, http.MethodGet, "/healthz", nil)
	if err == nil && got.code != http.StatusOK {
		err = c.errStatus(got)
	}
	return err
}

// Readiness returns what the server checks before it reports that it is ready. No token
// is needed.
func (c Client) Readiness(ctx context.Context) (r Readiness, err error) {
	got, err := c.send(ctx, clientTimeout, http.MethodGet, "/readyz", nil)
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

// call sends a request, with a body in JSON unless in is nil, and returns the answer.
func call[T any](ctx context.Context, c Client, method, target string, in any) (answer T, err error) {
	got, err := c.send(ctx, clientTimeout, method, target, in)
	if err != nil {
		return answer, err
	}
	var refusal struct {
		Code    apierror.Code
		Message string
	}
	switch {
	case got.code == http.StatusOK:
		if json.Unmarshal(got.body, &answer) != nil {
			err = fmt.Errorf("%s did not answer as a petstore does; check that it is the admin listener", c.Addr)
		}
		return answer, err
	case got.code == http.StatusUnauthorized && c.Token == "":
		return answer, errors.New("the server requires its admin token; set PETSTORE_ADMIN_TOKEN or PETSTORE_ADMIN_TOKEN_FILE, or admin_token in the settings file")
	case got.code == http.StatusUnauthorized:
		return answer, errors.New("the server has another admin token than the one that was sent; correct PETSTORE_ADMIN_TOKEN or PETSTORE_ADMIN_TOKEN_FILE, or admin_token in the settings file")
	case json.Unmarshal(got.body, &refusal) == nil && refusal.Message != "" && refusal.Code != "not_found":
		return answer, fmt.Errorf("%s answered %s: %s", c.Addr, got.status, refusal.Message)
	default:
		return answer, c.errStatus(got)
	}
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
func (c Client) send(ctx context.Context, timeout time.Duration, method, target string, in any) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return reply{}, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+c.Addr+target, bytes.NewReader(body))
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
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return reply{}, fmt.Errorf("%s does not answer within %v; the server may hang: see its log", c.Addr, timeout)
	case err != nil:
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // the message has the address already
		}
		return reply{}, fmt.Errorf("no server answers at %s: %w; start one with petstore serve, or name its admin listener with --admin-listen", c.Addr, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return reply{}, fmt.Errorf("cannot read the response of %s: %w", c.Addr, err)
	}
	return reply{resp.StatusCode, resp.Status, answer}, nil
}

func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
