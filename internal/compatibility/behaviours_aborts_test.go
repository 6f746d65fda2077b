package compatibility

import (
	"context"
	"io"
	"net/http"
	"strings"
)

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
