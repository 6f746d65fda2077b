package compatibility

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"slices"
	"strings"
)

// All requests have these, so that no middleware refuses them or makes up an ID.
const (
	apiKey    = "t0ken"
	requestID = "the-same-in-every-cell"
)

// request makes a request, with header fields in pairs.
func (c *cell) request(method, path string, body io.Reader, fields ...string) *http.Request {
	r := must(http.NewRequestWithContext(c.t.Context(), method, c.url+path, body))
	r.Header.Set("Authorization", "Bearer "+apiKey)
	r.Header.Set("X-Request-Id", requestID)
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	trace := &httptrace.ClientTrace{
		Got1xxResponse: func(status int, h textproto.MIMEHeader) error {
			c.received("interim status %d, Link %q", status, c.m.without("Link", h["Link"]))
			return nil
		},
		GotConn: func(info httptrace.GotConnInfo) {
			if info.Reused {
				c.received("the connection is used again")
			}
		},
	}
	return r.WithContext(httptrace.WithClientTrace(r.Context(), trace))
}

// do sends a request and notes the whole response.
func (c *cell) do(method, path string, body io.Reader, fields ...string) {
	c.whole(c.begin(c.request(method, path, body, fields...)))
}

// begin sends a request and notes the header section of the response. It returns nil
// if there is none.
func (c *cell) begin(r *http.Request) *http.Response {
	resp, err := c.client.Do(r)
	if err != nil {
		c.received("no response")
		return nil
	}
	c.header(resp)
	return resp
}

// header notes status and fields, without those that the middleware adds, which must
// be there.
func (c *cell) header(resp *http.Response) {
	c.received("status %d, Content-Length %d", resp.StatusCode, resp.ContentLength)
	for name := range c.m.adds {
		if name == "Strict-Transport-Security" && !c.http2 || name == c.b.removes || c.b.hijacks {
			continue
		}
		if !c.m.has(name, resp.Header[name]) {
			c.received("%s of the middleware is missing", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
		lines := c.m.without(name, resp.Header[name])
		if len(lines) > 0 && name != "Date" && name != "X-Request-Id" && name != c.b.unlike {
			c.received("%s: %s", name, strings.Join(lines, " | "))
		}
	}
	if resp.Close {
		if c.b.unlike != "Connection" {
			c.received("the connection will be closed")
		}
	}
}

// whole notes the rest of a response.
func (c *cell) whole(resp *http.Response) {
	if resp == nil {
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		// How many bytes arrive before an abort depends on the network.
		c.received("the body is broken off")
		return
	case len(body) > 200:
		c.received("body %d bytes from %q to %q", len(body), body[:10], body[len(body)-10:])
	default:
		c.received("body %q", body)
	}
	for _, name := range slices.Sorted(maps.Keys(resp.Trailer)) {
		c.received("trailer %s: %s", name, strings.Join(resp.Trailer[name], " | "))
	}
}

// read notes the next bytes of a body as they arrive.
func (c *cell) read(body io.Reader, n int) {
	p := make([]byte, n)
	if _, err := io.ReadFull(body, p); err != nil {
		c.received("no more can be read")
		return
	}
	c.received("read %q", p)
}

// outcome names an error for notes.
func outcome(err error) string {
	switch {
	case err == nil:
		return "no error"
	case errors.Is(err, http.ErrNotSupported):
		return "not supported"
	default:
		return "an error"
	}
}

// timeout names an error that should be that of a deadline.
func timeout(err error) string {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "i/o timeout"
	}
	return outcome(err)
}
