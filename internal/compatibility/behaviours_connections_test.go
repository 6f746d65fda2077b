package compatibility

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
)

// hijacks takes the connection and echoes a line.
func hijacks(hijack func(http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error)) func(*cell, http.ResponseWriter, *http.Request) {
	return func(c *cell, w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := hijack(w)
		c.served("hijack: %s", outcome(err))
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, err := rw.ReadString('\n')
		c.served("line %q, %s", line, outcome(err))
		_, _ = io.WriteString(conn, line)
	}
}

// upgrade asks for another protocol and sends a line in it.
func upgrade(c *cell) {
	if c.http2 {
		c.do(http.MethodGet, "/", nil)
		return
	}
	conn, in := c.dial("GET / HTTP/1.1", "Connection: Upgrade", "Upgrade: echo", "", "")
	defer conn.Close()
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		c.received("no response")
		return
	}
	c.header(resp)
	_, _ = io.WriteString(conn, "ping\n")
	line, err := in.ReadString('\n')
	c.received("line %q, %s", line, outcome(err))
}

var echoed = [2]string{`client: line "ping\n", no error`, "hijack: not supported"}

// connections are handlers that look below the response.
var connections = []behaviour{
	{
		name:  "http.Hijacker",
		proof: echoed,
		serve: hijacks(func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
			if h, ok := w.(http.Hijacker); ok {
				return h.Hijack()
			}
			return nil, nil, http.ErrNotSupported
		}),
		ask:     upgrade,
		hijacks: true,
	},
	{
		name:  "ResponseController.Hijack",
		proof: echoed,
		serve: hijacks(func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
			return http.NewResponseController(w).Hijack()
		}),
		ask:     upgrade,
		hijacks: true,
	},
	{
		name:  "a connection taken after the body was read",
		proof: [2]string{`handler: line "ping\r\n"`, ""},
		serve: func(c *cell, w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			c.served("body %q", body)
			hijacks(func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
				return http.NewResponseController(w).Hijack()
			})(c, w, r)
		},
		ask: func(c *cell) {
			conn, in := c.dial("POST / HTTP/1.1", "Content-Length: 4", "Connection: Upgrade", "Upgrade: echo", "", "petsping", "")
			defer conn.Close()
			rest, err := io.ReadAll(in)
			c.received("all that was sent: %q, %s", rest, outcome(err))
		},
		hijacks: true,
	},
	{
		name:    "an upgrade through httputil.ReverseProxy",
		proof:   [2]string{`client: line "ping\n", no error`, ""},
		serve:   proxied(hijacks(func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) { return w.(http.Hijacker).Hijack() })),
		ask:     upgrade,
		hijacks: true,
	},
	{
		name:  "a stream through httputil.ReverseProxy",
		proof: bothRead,
		serve: proxied(flushes(func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() })),
		ask:   readFlushed,
	},
	{
		name:  "http.Pusher",
		proof: [2]string{"push: not supported", "one PUSH_PROMISE"},
		serve: func(c *cell, w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/" {
				return // what was pushed
			}
			err := error(http.ErrNotSupported)
			if p, ok := w.(http.Pusher); ok {
				err = p.Push("/style.css", nil)
			}
			c.served("push: %s", outcome(err))
		},
		ask: func(c *cell) {
			if c.http2 {
				takePushes(c)
			} else {
				c.do(http.MethodGet, "/", nil)
			}
		},
	},
	{
		name:  "a client that disconnects",
		proof: [2]string{"the context ended: context canceled", "the context ended: context canceled"},
		serve: func(c *cell, w http.ResponseWriter, r *http.Request) {
			gone := w.(interface{ CloseNotify() <-chan bool }).CloseNotify()
			_ = http.NewResponseController(w).Flush() // fails if the client is very quick
			<-r.Context().Done()
			c.served("the context ended: %v", r.Context().Err())
			c.served("CloseNotify: %v", <-gone)
		},
		ask: func(c *cell) {
			ctx, cancel := context.WithCancel(c.t.Context())
			defer cancel()
			if resp := c.begin(c.request(http.MethodGet, "/", nil).WithContext(ctx)); resp != nil {
				cancel()
				_ = resp.Body.Close()
			}
		},
	},
}

// proxied serves by a reverse proxy with this backend.
func proxied(backend func(*cell, http.ResponseWriter, *http.Request)) func(*cell, http.ResponseWriter, *http.Request) {
	return func(c *cell, w http.ResponseWriter, r *http.Request) {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { backend(c, w, r) }))
		defer srv.Close()
		target, err := url.Parse(srv.URL)
		if err != nil {
			c.t.Error(err)
			return
		}
		(&httputil.ReverseProxy{Rewrite: func(pr *httputil.ProxyRequest) { pr.SetURL(target) }}).ServeHTTP(w, r)
	}
}

// aborts are responses and requests that are broken off.
var aborts = []behaviour{
	{
		name:  "http.ErrAbortHandler at once",
		proof: [2]string{"no response", "no response"},
		serve: func(*cell, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	},
	{
		name:  "http.ErrAbortHandler after the header section",
		proof: [2]string{"the body is broken off", "the body is broken off"},
		serve: func(c *cell, w http.ResponseWriter, _ *http.Request) {
			c.served("flush: %s", outcome(http.NewResponseController(w).Flush()))
			c.wait()
			panic(http.ErrAbortHandler)
		},
		ask: openAfterHeader,
	},
	{
		name:  "http.ErrAbortHandler in the body",
		proof: [2]string{"the body is broken off", "the body is broken off"},
		serve: func(c *cell, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000000")
			_, _ = io.WriteString(w, large[:1000])
			_ = http.NewResponseController(w).Flush()
			c.wait()
			panic(http.ErrAbortHandler)
		},
		ask: openAfterHeader,
	},
	{
		name:  "http.ErrAbortHandler from the source of a copy",
		proof: [2]string{"the body is broken off", "the body is broken off"},
		serve: func(c *cell, w http.ResponseWriter, _ *http.Request) {
			_, _ = io.Copy(w, struct{ io.Reader }{io.MultiReader(strings.NewReader(large), abortingReader{c})})
		},
		ask: openAfterHeader,
	},
	{
		name:  "http.ErrAbortHandler in a hijacked connection",
		proof: [2]string{`all that was sent: "HTTP/1.1 200 OK`, ""},
		serve: func(c *cell, w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				c.served("hijack: %s", outcome(err))
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\npets")
			panic(http.ErrAbortHandler)
		},
		ask: func(c *cell) {
			conn, in := c.dial("GET / HTTP/1.1", "", "")
			defer conn.Close()
			rest, err := io.ReadAll(in)
			c.received("all that was sent: %q, %s", rest, outcome(err))
		},
	},
	{
		name:  "a client that disconnects in the response",
		proof: [2]string{"write: an error", "write: an error"},
		serve: func(c *cell, w http.ResponseWriter, r *http.Request) {
			for {
				_, err := io.WriteString(w, large)
				if err == nil {
					err = http.NewResponseController(w).Flush()
				}
				if err != nil {
					c.served("write: %s", outcome(err))
					return
				}
			}
		},
		ask: func(c *cell) {
			ctx, cancel := context.WithCancel(c.t.Context())
			defer cancel()
			if resp := c.begin(c.request(http.MethodGet, "/", nil).WithContext(ctx)); resp != nil {
				c.read(resp.Body, 10)
				cancel()
				_ = resp.Body.Close()
			}
		},
	},
	{
		name:  "a client that disconnects in its body",
		proof: [2]string{`body "pets", an error`, `body "pets", an error`},
		serve: func(c *cell, _ http.ResponseWriter, r *http.Request) {
			body := make([]byte, 4)
			_, _ = io.ReadFull(r.Body, body)
			c.open()
			_, err := io.ReadAll(r.Body)
			c.served("body %q, %s", body, outcome(err))
		},
		ask: func(c *cell) {
			ctx, cancel := context.WithCancel(c.t.Context())
			defer cancel()
			body, send := io.Pipe()
			go func() {
				_, _ = io.WriteString(send, "pets")
				c.wait()
				cancel()
				_ = send.CloseWithError(ctx.Err())
			}()
			c.begin(c.request(http.MethodPost, "/", body).WithContext(ctx))
		},
	},
}

// openAfterHeader lets the handler abort once the header section, if any, is there.
func openAfterHeader(c *cell) {
	resp := c.begin(c.request(http.MethodGet, "/", nil))
	c.open()
	c.whole(resp)
}

// abortingReader aborts when the client has the header section.
type abortingReader struct{ c *cell }

func (r abortingReader) Read([]byte) (int, error) {
	r.c.wait()
	panic(http.ErrAbortHandler)
}
