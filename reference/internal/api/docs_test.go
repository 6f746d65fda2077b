package api_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/contract"
	"github.com/animalstore/gatehouse/reference/internal/pages"
)

// The page and its files need no key and are not charged. They have a policy of their
// own, are compressed, and are revalidated.
func TestDocs(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for path, contentType := range map[string]string{
		"/docs":          "text/html; charset=utf-8",
		"/docs/base.css": "text/css; charset=utf-8",
		"/docs/docs.js":  "text/javascript; charset=utf-8",
		"/docs/icon.svg": "image/svg+xml",
	} {
		plain, body := page(t, s, "GET", path)
		for name, want := range map[string]string{
			"Content-Type": contentType, "Content-Security-Policy": pages.Policy, "X-Content-Type-Options": "nosniff",
			"X-RateLimit-Limit": "600", "Set-Cookie": "",
		} {
			if got := strings.Join(plain.Header.Values(name), "\n"); plain.StatusCode != 200 || got != want {
				t.Errorf("GET %s: %d with %s %q, want 200 with %q", path, plain.StatusCode, name, got, want)
			}
		}
		zipped, short := page(t, s, "GET", path, "Accept-Encoding: gzip")
		z, err := gzip.NewReader(bytes.NewReader(short))
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(z); err != nil || !bytes.Equal(text, body) || zipped.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("GET %s with gzip is not the same (%v)", path, err)
		}
		again, none := page(t, s, "GET", path, "If-None-Match: "+plain.Header.Get("ETag"))
		if again.StatusCode != 304 || len(none) > 0 || again.Header.Get("Content-Type") != "" {
			t.Errorf("GET %s with its ETag: %d with %d bytes, want 304", path, again.StatusCode, len(none))
		}
		if head, _ := page(t, s, "HEAD", path); head.StatusCode != 200 || head.ContentLength != int64(len(body)) {
			t.Errorf("HEAD %s: %d with the length %d, want %d", path, head.StatusCode, head.ContentLength, len(body))
		}
		want(t, s.Do(t, contract.Request{Method: http.MethodPost, Target: path}), 405, "method_not_allowed")
	}
	for _, target := range []string{"/docs/", "/docs/page.html", "/docs/..%2Fdocs", "/docs/docs.js/", "/Docs"} {
		want(t, s.Get(t, target), 404, "not_found")
	}
	// The policy of the page does not reach the API, and errors of a page are readable.
	if got := s.Get(t, "/v1/pets").Header.Get("Content-Security-Policy"); got != "default-src 'none'; frame-ancestors 'none'" {
		t.Errorf("the API has the Content-Security-Policy %q", got)
	}
	if failed, body := page(t, s, "GET", "/docs", `If-Match: "x"`); failed.StatusCode != 412 || failed.Header.Get("Content-Type") != "application/json" {
		t.Errorf("GET /docs with If-Match: %d %s %s, want 412 as JSON", failed.StatusCode, failed.Header.Get("Content-Type"), body)
	}
}

// The relation deprecation leads to the chapter of the operation, unless the settings
// name another page.
func TestDeprecationLinksToDocs(t *testing.T) {
	t.Parallel()
	for documentation, want := range map[string]string{
		"":                          `</docs#getPet>; rel="deprecation"`,
		"https://docs.example/pets": `<https://docs.example/pets>; rel="deprecation"`,
	} {
		s := start(t, func(c *api.Config) {
			c.Deprecations = getPetLeaving(func(o *deprecation.Options) { o.Documentation = documentation })
		})
		if got := s.Get(t, "/v1/pets/1").Header.Get("Link"); !strings.HasSuffix(got, want) {
			t.Errorf("with the documentation %q: Link is %q, want it to end with %s", documentation, got, want)
		}
		if _, html := page(t, s, "GET", "/docs"); !bytes.Contains(html, []byte(`id="getPet"`)) {
			t.Error("/docs has no chapter getPet")
		}
	}
}
