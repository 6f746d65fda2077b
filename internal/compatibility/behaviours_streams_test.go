package compatibility

import (
	"io"
	"net/http"
	"strings"
	"time"
)

// flushes streams two pieces. The client opens the gate once it has the first.
func flushes(flush func(w http.ResponseWriter) error) func(*cell, http.ResponseWriter, *http.Request) {
	return func(c *cell, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: 1\n\n")
		c.served("flush: %s", outcome(flush(w)))
		c.wait()
		_, _ = io.WriteString(w, "data: 2\n\n")
	}
}

func readFlushed(c *cell) {
	resp := c.begin(c.request(http.MethodGet, "/", nil))
	if resp == nil {
		return
	}
	c.read(resp.Body, len("data: 1\n\n"))
	c.open()
	c.whole(resp)
}

var bothRead = [2]string{`read "data: 1\n\n"`, `read "data: 1\n\n"`}

// streams are responses, and requests, that arrive bit by bit.
var streams = []behaviour{
	{name: "http.Flusher", proof: bothRead, serve: flushes(func(w http.ResponseWriter) error { w.(http.Flusher).Flush(); return nil }), ask: readFlushed},
	{
		name:  "ResponseController.Flush",
		proof: bothRead,
		serve: flushes(func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() }),
		ask:   readFlushed,
	},
	{
		name:  "a flush before the body",
		proof: [2]string{"status 200, Content-Length -1", "status 200, Content-Length -1"},
		serve: func(c *cell, w http.ResponseWriter, _ *http.Request) {
			c.served("flush: %s", outcome(http.NewResponseController(w).Flush()))
			c.wait()
			w.Header().Set("X-Late", "is not sent")
			_, _ = io.WriteString(w, "pets")
		},
		ask: func(c *cell) {
			resp := c.begin(c.request(http.MethodGet, "/", nil))
			c.open()
			c.whole(resp)
		},
	},
	{
		name:  "full duplex",
		proof: [2]string{`read "echo b"`, `read "echo b"`},
		serve: func(c *cell, w http.ResponseWriter, r *http.Request) {
			control := http.NewResponseController(w)
			c.served("full duplex: %s", outcome(control.EnableFullDuplex()))
			for {
				p := make([]byte, 1)
				if _, err := io.ReadFull(r.Body, p); err != nil {
					c.served("the end of the body: %v", err)
					return
				}
				_, _ = io.WriteString(w, "echo "+string(p))
				if err := control.Flush(); err != nil {
					c.served("flush: %s", outcome(err))
				}
			}
		},
		ask: func(c *cell) {
			body, send := io.Pipe()
			go func() { _, _ = io.WriteString(send, "a") }()
			resp := c.begin(c.request(http.MethodPost, "/", body))
			if resp == nil {
				return
			}
			c.read(resp.Body, len("echo a"))
			_, _ = io.WriteString(send, "b")
			c.read(resp.Body, len("echo b"))
			_ = send.Close()
			c.whole(resp)
		},
	},
	{
		name:  "a large body in both directions",
		proof: [2]string{"copied 1000000 bytes, no error", "copied 1000000 bytes, no error"},
		serve: func(c *cell, w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			c.served("read %d bytes, %s", len(body), outcome(err))
			n, err := io.Copy(w, strings.NewReader(string(body)))
			c.served("copied %d bytes, %s", n, outcome(err))
		},
		ask: func(c *cell) { c.do(http.MethodPost, "/", strings.NewReader(large)) },
	},
	{
		name:  "a deadline for reading",
		proof: [2]string{"body: i/o timeout", "body: i/o timeout"},
		serve: func(c *cell, w http.ResponseWriter, r *http.Request) {
			c.served("SetReadDeadline: %s", outcome(http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))))
			_, err := r.Body.Read(make([]byte, 1))
			c.served("body: %s", timeout(err))
		},
		ask: func(c *cell) {
			body, send := io.Pipe() // nothing is ever sent
			defer send.Close()
			c.do(http.MethodPost, "/", body)
		},
	},
	{
		name:  "a deadline for writing",
		proof: [2]string{"SetWriteDeadline: no error", "SetWriteDeadline: no error"},
		serve: func(c *cell, w http.ResponseWriter, _ *http.Request) {
			control := http.NewResponseController(w)
			c.served("SetWriteDeadline: %s", outcome(control.SetWriteDeadline(time.Unix(1, 0))))
			_, err := io.WriteString(w, large)
			c.served("write: %s", outcome(err))
		},
	},
	{
		name:  "a deadline that is lifted",
		proof: [2]string{`body "pets"`, `body "pets"`},
		serve: func(c *cell, w http.ResponseWriter, _ *http.Request) {
			control := http.NewResponseController(w)
			c.served("SetWriteDeadline: %s", outcome(control.SetWriteDeadline(time.Now().Add(time.Hour))))
			c.served("SetWriteDeadline: %s", outcome(control.SetWriteDeadline(time.Time{})))
			_, _ = io.WriteString(w, "pets")
		},
	},
}
