package compatibility

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

var large = strings.Repeat("0123456789", 100_000)

// contents are whole responses.
var contents = []behaviour{
	{
		name:  "a response that the handler leaves to net/http",
		proof: [2]string{"status 200, Content-Length 0", "status 200, Content-Length 0"},
		serve: func(*cell, http.ResponseWriter, *http.Request) {},
	},
	{
		name:  "a status without a body",
		proof: [2]string{"status 404, Content-Length 0", "status 404, Content-Length 0"},
		serve: func(_ *cell, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
	},
	{
		name:  "a second status",
		proof: [2]string{"status 201", "status 201"},
		serve: func(_ *cell, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			w.WriteHeader(http.StatusInternalServerError)
		},
	},
	{
		name:  "fields of the handler",
		proof: [2]string{`Link: </next>; rel="next"`, `Link: </next>; rel="next"`},
		serve: func(_ *cell, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", `</next>; rel="next"`)
			w.Header().Add("Set-Cookie", "a=1")
			w.Header().Add("Set-Cookie", "b=2")
			w.Header()["Content-Type"] = nil // none at all
			_, _ = io.WriteString(w, "pets")
		},
	},
	{
		name:  "a media type that net/http finds in Write",
		proof: [2]string{"Content-Type: text/html", "Content-Type: text/html"},
		serve: func(_ *cell, w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>pets")) },
	},
	{
		name:  "a media type that net/http finds in WriteString",
		proof: [2]string{"Content-Type: text/html", "Content-Type: text/html"},
		serve: func(_ *cell, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>pets") },
	},
	{
		name:  "a media type that net/http finds in ReadFrom",
		proof: [2]string{"Content-Type: text/html", "Content-Type: text/html"},
		serve: func(c *cell, w http.ResponseWriter, _ *http.Request) {
			n, err := io.Copy(w, io.LimitReader(strings.NewReader("<html>"+large), 100_000))
			c.served("copied %d bytes, %s", n, outcome(err))
		},
	},
	{
		name:  "an empty source",
		proof: [2]string{"status 200, Content-Length 0", "status 200, Content-Length 0"},
		serve: func(c *cell, w http.ResponseWriter, _ *http.Request) {
			n, err := io.Copy(w, io.LimitReader(strings.NewReader(""), 10))
			c.served("copied %d bytes, %s", n, outcome(err))
		},
	},
	{
		name:  "204 with a body",
		proof: [2]string{"http.ErrBodyNotAllowed true", "http.ErrBodyNotAllowed true"},
		serve: func(c *cell, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
			_, err := io.WriteString(w, "pets")
			c.served("http.ErrBodyNotAllowed %v", errors.Is(err, http.ErrBodyNotAllowed))
		},
	},
	{
		name:  "more bytes than Content-Length",
		proof: [2]string{"http.ErrContentLength true", "the body is broken off"},
		serve: func(c *cell, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "4")
			_, err := io.WriteString(w, "pets and more")
			c.served("%s, http.ErrContentLength %v", outcome(err), errors.Is(err, http.ErrContentLength))
		},
	},
	{
		name:  "fewer bytes than Content-Length",
		proof: [2]string{"the body is broken off", "the body is broken off"},
		serve: func(_ *cell, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "40")
			_, _ = io.WriteString(w, "pets")
		},
	},
	{
		name:  "HEAD",
		proof: [2]string{"status 200, Content-Length 4", "status 200, Content-Length 4"},
		serve: func(c *cell, w http.ResponseWriter, r *http.Request) {
			n, err := io.WriteString(w, "pets")
			c.served("%s wrote %d bytes, %s", r.Method, n, outcome(err))
		},
		ask: func(c *cell) { c.do(http.MethodHead, "/", nil) },
	},
	{
		name:  "HEAD of a large response",
		proof: [2]string{"status 200, Content-Length -1", "status 200, Content-Length -1"},
		serve: func(_ *cell, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, large) },
		ask:   func(c *cell) { c.do(http.MethodHead, "/", nil) },
	},
	{
		name:  "HEAD with the length of GET",
		proof: [2]string{"status 200, Content-Length 1000000", "status 200, Content-Length 1000000"},
		serve: func(_ *cell, w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "1000000") },
		ask:   func(c *cell) { c.do(http.MethodHead, "/", nil) },
	},
	{
		name:  "http.TimeoutHandler",
		proof: [2]string{"status 503", "status 503"},
		serve: func(c *cell, w http.ResponseWriter, r *http.Request) {
			slow := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { c.wait() })
			http.TimeoutHandler(slow, time.Nanosecond, "late").ServeHTTP(w, r)
		},
	},
}
