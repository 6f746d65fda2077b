package compatibility

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"slices"
	"strings"

	"github.com/animalstore/gatehouse/internal/testcheck"
)

// All requests have these, so that no middleware refuses them or makes up an ID.
const (
	apiKey    = "t0ken"
	requestID = "the-same-in-every-cell"
)

// request makes a request, with header fields in pairs.
func (c *cell) request(method, path string, body io.Reader, fields ...string) *http.Request {
	r := testcheck.Must(http.NewRequestWithContext(c.t.Context(), method, c.url+path, body))
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

// dial opens a connection for HTTP/1.1 and sends lines. Host and the fields that all
// requests have come after the first.
func (c *cell) dial(lines ...string) (net.Conn, *bufio.Reader) {
	address := strings.TrimPrefix(c.url, "http://")
	conn := testcheck.Must(net.Dial("tcp", address))
	text := lines[0] + "\r\nHost: " + address + "\r\nAuthorization: Bearer " + apiKey + "\r\nX-Request-Id: " + requestID + "\r\n" +
		strings.Join(lines[1:], "\r\n")
	_, _ = io.WriteString(conn, strings.TrimSuffix(text, "\r\n")+"\r\n")
	return conn, bufio.NewReader(conn)
}

// raw sends lines on a connection of its own and notes the response.
func (c *cell) raw(lines ...string) {
	conn, in := c.dial(lines...)
	defer conn.Close()
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		c.received("no response")
		return
	}
	c.header(resp)
	c.whole(resp)
}

// Types and flags of HTTP/2 frames (RFC 9113 section 6).
const (
	frameData        = 0x0
	frameHeaders     = 0x1
	frameSettings    = 0x4
	framePushPromise = 0x5
	endStream        = 0x1
	endHeaders       = 0x4
)

// takePushes sends GET / over HTTP/2 as a client that takes pushes, which that of
// net/http never does, and notes how many are promised before the response ends.
func takePushes(c *cell) {
	config := c.client.Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos = []string{"h2"}
	config.ServerName = "example.com" // in the certificate of httptest
	conn := testcheck.Must(tls.Dial("tcp", strings.TrimPrefix(c.url, "https://"), config))
	defer conn.Close()

	// Fields as literals that are never indexed, in HPACK (RFC 7541 section 6.2.2).
	block := []byte{0x82, 0x84, 0x87} // GET, /, https
	for _, f := range [][2]string{{":authority", "example.com"}, {"authorization", "Bearer " + apiKey}, {"x-request-id", requestID}} {
		block = append(block, 0x00, byte(len(f[0])))
		block = append(block, f[0]...)
		block = append(block, byte(len(f[1])))
		block = append(block, f[1]...)
	}
	_, _ = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	_, _ = conn.Write(frame(frameSettings, 0, 0, nil))
	_, _ = conn.Write(frame(frameHeaders, endStream|endHeaders, 1, block))

	promises := 0
	for in := bufio.NewReader(conn); ; {
		var header [9]byte
		if _, err := io.ReadFull(in, header[:]); err != nil {
			c.received("the connection ended: %v", err)
			return
		}
		length := int64(header[0])<<16 | int64(header[1])<<8 | int64(header[2])
		_, _ = io.CopyN(io.Discard, in, length)
		kind, flags, stream := header[3], header[4], binary.BigEndian.Uint32(header[5:])
		if kind == framePushPromise {
			promises++
		}
		if stream == 1 && flags&endStream != 0 && (kind == frameData || kind == frameHeaders) {
			break
		}
	}
	if promises == 1 {
		c.received("one PUSH_PROMISE")
	} else {
		c.received("%d PUSH_PROMISEs", promises)
	}
}

// frame returns an HTTP/2 frame (RFC 9113 section 4.1).
func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	f := []byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}
	return append(binary.BigEndian.AppendUint32(f, stream), payload...)
}
