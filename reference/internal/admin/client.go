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

// maxAnswer bounds the body of a response; a ban or a key has a few hundred bytes.
const maxAnswer = 1 << 30

// do sends a request, with a body in JSON unless in is nil, and reads the answer into
// out.
func (c Client) do(ctx context.Context, method, path string, query url.Values, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	resp, err := c.send(ctx, method, path, query, in)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return c.read(resp, out)
}

// send sends a request, with a body in JSON unless in is nil. The caller closes the body
// of the response.
func (c Client) send(ctx context.Context, method, path string, query url.Values, in any) (*http.Response, error) {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return nil, err
		}
	}
	target := "http://" + reachable(c.Addr) + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
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
		return nil, fmt.Errorf("%w at %s: %w", ErrNoAnswer, c.Addr, err)
	}
	return resp, nil
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
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated {
		var refusal struct {
			Code    apierror.Code
			Message string
		}
		if json.Unmarshal(data, &refusal) == nil && refusal.Message != "" && refusal.Code != apierror.CodeNotFound {
			return fmt.Errorf("%s answered %s: %s", c.Addr, resp.Status, refusal.Message)
		}
		return fmt.Errorf("%s answered %s; check that it is the admin listener", c.Addr, resp.Status)
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("%s did not answer as a petstore does; check that it is the admin listener", c.Addr)
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
