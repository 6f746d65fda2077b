package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
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

// timeout bounds one call.
const timeout = 10 * time.Second

// maxAnswer bounds the body of a response; a ban has about a hundred bytes.
const maxAnswer = 1 << 30

// Bans returns the bans in force, those that end last first.
func (c Client) Bans(ctx context.Context) ([]Ban, error) {
	var answer bans
	err := c.do(ctx, http.MethodGet, nil, &answer)
	return answer.Bans, err
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
	err := c.do(ctx, http.MethodDelete, url.Values{kind: {name}}, &answer)
	return answer.Unbanned, err
}

// do sends a request for /bans and reads the answer into out.
func (c Client) do(ctx context.Context, method string, query url.Values, out any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	target := url.URL{Scheme: "http", Host: reachable(c.Addr), Path: "/bans", RawQuery: query.Encode()}
	r, err := http.NewRequestWithContext(ctx, method, target.String(), nil)
	if err != nil {
		return err
	}
	if c.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}
	// A transport without a proxy: a proxy would get the token.
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport, CheckRedirect: refuseRedirect}).Do(r)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // the message has the address already
		}
		return fmt.Errorf("%w at %s: %w", ErrNoAnswer, c.Addr, err)
	}
	defer resp.Body.Close()
	return c.read(resp, out)
}

func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func (c Client) read(resp *http.Response, out any) error {
	if resp.StatusCode == http.StatusUnauthorized {
		return ErrToken
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("cannot read the response of %s: %w", c.Addr, err)
	}
	if resp.StatusCode != http.StatusOK {
		var refusal struct{ Message string }
		if json.Unmarshal(data, &refusal) == nil && refusal.Message != "" {
			return fmt.Errorf("%s answered %s: %s", c.Addr, resp.Status, refusal.Message)
		}
		return fmt.Errorf("%s answered %s; check that it is the admin listener", c.Addr, resp.Status)
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("%s did not answer with bans; check that it is the admin listener", c.Addr)
	}
	return nil
}

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
