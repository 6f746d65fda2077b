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

// A Client speaks to the admin listener of a running server.
type Client struct {
	Addr  string // host and port of the listener
	Token string // its token; empty: none is sent
}

var (
	// ErrToken means that the server asks for a token, or for another one.
	ErrToken = errors.New("the server asks for its admin token")
	// ErrNoAnswer means that there is no server.
	ErrNoAnswer = errors.New("no server answers")
)

// timeout is how long one call may take.
const timeout = 10 * time.Second

// maxAnswer bounds what is read of an answer; a ban takes some hundred octets.
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

// UnbanNetwork does the same for a network, which may be given as an address in it.
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
	// A transport of its own: no proxy from the environment gets to see the token.
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport, CheckRedirect: refuseRedirect}).Do(r)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // the URL is in the message already
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
		return fmt.Errorf("reading the answer from %s: %w", c.Addr, err)
	}
	if resp.StatusCode != http.StatusOK {
		var refusal struct{ Message string }
		if json.Unmarshal(data, &refusal) == nil && refusal.Message != "" {
			return fmt.Errorf("%s answers %s: %s", c.Addr, resp.Status, refusal.Message)
		}
		return fmt.Errorf("%s answers %s; is it the admin listener?", c.Addr, resp.Status)
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("%s answers with something else than bans; is it the admin listener?", c.Addr)
	}
	return nil
}

// reachable replaces an address that means all of a machine by one to connect to.
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
