package compatibility

import (
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// largeFile makes a file with the content of large.
func largeFile(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "pets.txt")
	if err := os.WriteFile(name, []byte(large), 0o600); err != nil {
		t.Fatal(err)
	}
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
	{
		name:  "a whole file, by sendfile",
		proof: [2]string{"the connection was given the file", "status 200, Content-Length 1000000"},
		serve: serveFile,
	},
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
	{
		name:  "the last bytes",
		proof: [2]string{"status 206, Content-Length 5", "status 206, Content-Length 5"},
		serve: serveFile,
		ask:   get("Range", "bytes=-5"),
	},
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
	{
		name:  "304",
		proof: [2]string{"status 304", "status 304"},
		serve: serveFile,
		ask:   get("If-None-Match", `"v1"`),
	},
	{
		name:  "412",
		proof: [2]string{"status 412", "status 412"},
		serve: serveFile,
		ask:   get("If-Match", `"v0"`),
	},
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
