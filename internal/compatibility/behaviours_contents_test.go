package compatibility

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
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

// largeFile makes a file with the content of large.
func largeFile(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "pets.txt")
	testcheck.NoError(t, os.WriteFile(name, []byte(large), 0o600))
	return name
}

// serveFile serves a file of the operating system.
func serveFile(c *cell, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", `"v1"`)
	http.ServeFile(w, r, c.file)
}

func get(fields ...string) func(*cell) {
	return func(c *cell) { c.do(http.MethodGet, "/", nil, fields...) }
}

// ranges are parts of files and conditional requests.
var ranges = []behaviour{
	{name: "a whole file, by sendfile", proof: [2]string{"the connection was given the file", "status 200, Content-Length 1000000"}, serve: serveFile},
	{
		name:  "a copied file, by sendfile",
		proof: [2]string{"the connection was given the file", "body 1000000 bytes"},
		serve: func(c *cell, w http.ResponseWriter, _ *http.Request) {
			f, err := os.Open(c.file)
			if err != nil {
				c.t.Error(err)
				return
			}
			defer f.Close()
			w.Header().Set("Content-Length", "1000000")
			n, err := io.Copy(w, f)
			c.served("copied %d bytes, %s", n, outcome(err))
		},
	},
	{
		name:  "a range, by sendfile",
		proof: [2]string{"the connection was given the file", "Content-Range: bytes 11-100010/1000000"},
		serve: serveFile,
		ask:   get("Range", "bytes=11-100010"),
	},
	{name: "the last bytes", proof: [2]string{"status 206, Content-Length 5", "status 206, Content-Length 5"}, serve: serveFile, ask: get("Range", "bytes=-5")},
	{
		name:  "several ranges",
		proof: [2]string{`part bytes 20-29/1000000: "0123456789"`, `part bytes 20-29/1000000: "0123456789"`},
		serve: serveFile,
		ask:   severalRanges,
		// The boundary between the parts is random.
		unlike: "Content-Type",
	},
	{
		name:  "a range that is not there",
		proof: [2]string{"Content-Range: bytes */1000000", "Content-Range: bytes */1000000"},
		serve: serveFile,
		ask:   get("Range", "bytes=2000000-"),
		// http.ServeFile removes the one from errors, and sets the other itself.
		removes: "Cache-Control",
		unlike:  "X-Content-Type-Options",
	},
	{
		name:  "a range of what has changed",
		proof: [2]string{"status 200, Content-Length 1000000", "status 200, Content-Length 1000000"},
		serve: serveFile,
		ask:   get("Range", "bytes=0-9", "If-Range", `"v0"`),
	},
	{
		name:  "HEAD of a range",
		proof: [2]string{"status 206, Content-Length 10", "status 206, Content-Length 10"},
		serve: serveFile,
		ask:   func(c *cell) { c.do(http.MethodHead, "/", nil, "Range", "bytes=0-9") },
	},
	{name: "304", proof: [2]string{"status 304", "status 304"}, serve: serveFile, ask: get("If-None-Match", `"v1"`)},
	{name: "412", proof: [2]string{"status 412", "status 412"}, serve: serveFile, ask: get("If-Match", `"v0"`)},
}

func severalRanges(c *cell) {
	resp := c.begin(c.request(http.MethodGet, "/", nil, "Range", "bytes=0-9,20-29"))
	if resp == nil {
		return
	}
	defer resp.Body.Close()
	_, params, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(resp.Header.Get("Content-Type"), "multipart/byteranges") {
		c.received("no parts")
		return
	}
	for parts := multipart.NewReader(resp.Body, params["boundary"]); ; {
		part, err := parts.NextPart()
		if err != nil {
			c.received("the end of the parts: %v", err)
			return
		}
		text, err := io.ReadAll(part)
		c.received("part %s: %q, %s", strings.TrimSpace(part.Header.Get("Content-Range")), text, outcome(err))
	}
}
