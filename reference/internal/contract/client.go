package contract

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A Client sends requests as they are written, octet by octet, which the client of
// net/http does not, and checks every response.
type Client struct {
	Contract *Contract
	Addr     string           // host and port
	Key      string           // sent by Do; empty: none
	Now      func() time.Time // the service's clock
}

// Request is a request that [Client.Do] writes. Its zero value is GET without a
// target.
type Request struct {
	Method string // empty: GET
	Target string
	Header []string // lines such as "Accept: */*", beside Host and Authorization
	Key    *string  // instead of the client's; empty: none
	Body   string   // with its Content-Length, if not empty
}

// patience is how long a client waits for a response. It ends tests of a service that hangs.
const patience = 10 * time.Second

// Get sends a GET for target.
func (c *Client) Get(t testing.TB, target string, header ...string) *Response {
	t.Helper()
	return c.Do(t, Request{Target: target, Header: header})
}

// Post sends a JSON body to target.
func (c *Client) Post(t testing.TB, target, body string, header ...string) *Response {
	t.Helper()
	return c.Do(t, Request{
		Method: http.MethodPost, Target: target, Body: body,
		Header: append([]string{"Content-Type: application/json"}, header...),
	})
}

// Do sends a request on a connection of its own.
func (c *Client) Do(t testing.TB, r Request) *Response {
	t.Helper()
	if r.Method == "" {
		r.Method = http.MethodGet
	}
	key := c.Key
	if r.Key != nil {
		key = *r.Key
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", r.Method, r.Target, c.Addr)
	if key != "" {
		fmt.Fprintf(&b, "Authorization: Bearer %s\r\n", key)
	}
	for _, line := range r.Header {
		b.WriteString(line + "\r\n")
	}
	if r.Body != "" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(r.Body))
	}
	b.WriteString("\r\n" + r.Body)
	return c.Raw(t, b.String())
}

// Raw sends octets that begin with a request line, and reads one response.
func (c *Client) Raw(t testing.TB, octets string) *Response {
	t.Helper()
	conn := c.Dial(t)
	defer conn.Close()
	// A server that answers early may close before it has read everything.
	go io.WriteString(conn, octets)
	resp, err := c.Read(bufio.NewReader(conn), octets)
	if err != nil {
		t.Fatalf("%.200q: %v", octets, err)
	}
	c.Check(t, resp)
	return resp
}

// Dial opens a connection, for tests that write to it bit by bit.
func (c *Client) Dial(t testing.TB) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", c.Addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// Read reads the response to a request that begins with octets.
func (c *Client) Read(from *bufio.Reader, octets string) (*Response, error) {
	line, _, _ := strings.Cut(octets, "\r\n")
	method, rest, _ := strings.Cut(line, " ")
	target, _, _ := strings.Cut(rest, " ")
	resp, err := http.ReadResponse(from, &http.Request{Method: method})
	if err != nil {
		return nil, fmt.Errorf("no response: %w", err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the body: %w", err)
	}
	// ReadResponse takes these out of the header.
	if resp.Close && resp.Header.Get("Connection") == "" {
		resp.Header.Set("Connection", "close")
	}
	answer := &Response{Response: resp, Method: method, Target: target, Data: data}
	if err := answer.decode(); err != nil {
		return nil, fmt.Errorf("decoding the body: %w", err)
	}
	return answer, nil
}

// Check fails the test if resp is not what the service has promised.
func (c *Client) Check(t testing.TB, resp *Response) {
	t.Helper()
	if err := c.Contract.Check(resp, c.Now()); err != nil {
		t.Errorf("%s %.120s: %d: %v\n%.300s", resp.Method, resp.Target, resp.StatusCode, err, resp.Data)
	}
}
