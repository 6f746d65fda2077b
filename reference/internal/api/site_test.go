package api_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/contract"
	"github.com/animalstore/gatehouse/reference/internal/pages"
)

// unchecked sends a request with these fields alone, in the way of a client that decodes
// nothing by itself.
func unchecked(t testing.TB, s *service, method, target string, header ...string) (*http.Response, []byte) {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+s.Addr+target, nil)
	must(t, err)
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}).Do(r)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp, body
}

// page asks for a page, without a key.
func page(t testing.TB, s *service, method, target string, header ...string) (*http.Response, []byte) {
	t.Helper()
	resp, body := unchecked(t, s, method, target, header...)
	if resp.StatusCode < 400 {
		if got := resp.Header.Get("Cache-Control"); got != "no-cache" {
			t.Errorf("%s %s: Cache-Control is %q, want no-cache", method, target, got)
		}
		if got := resp.Header.Values("Vary"); !slices.Contains(got, "Accept-Encoding") {
			t.Errorf("%s %s: Vary is %q, want Accept-Encoding in it", method, target, got)
		}
	}
	return resp, body
}

// The document and the files of the page need no key and are not charged. They have a
// policy of their own and are revalidated, each coding with a validator of its own.
func TestSite(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const policy = "default-src 'none'; frame-ancestors 'none'"
	for path, want := range map[string][2]string{
		"/openapi.json":            {"application/json", policy},
		"/.well-known/api-catalog": {`application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"`, policy},
		"/docs":                    {"text/html; charset=utf-8", pages.Policy},
		"/docs/docs.css":           {"text/css; charset=utf-8", pages.Policy},
		"/docs/docs.js":            {"text/javascript; charset=utf-8", pages.Policy},
		"/docs/icon.svg":           {"image/svg+xml", pages.Policy},
	} {
		_, plain := page(t, s, "GET", path, "Range: bytes=0-9")
		tags := make(map[string]bool)
		for _, coding := range []string{"", "gzip"} {
			accept := "Accept-Encoding: " + coding
			resp, body := page(t, s, "GET", path, accept)
			etag := resp.Header.Get("ETag")
			tags[etag] = true
			for name, value := range map[string]string{
				"Content-Type": want[0], "Content-Security-Policy": want[1], "X-Content-Type-Options": "nosniff",
				"X-RateLimit-Limit": "600", "Set-Cookie": "", "Content-Encoding": coding,
			} {
				if got := strings.Join(resp.Header.Values(name), "\n"); resp.StatusCode != 200 || got != value {
					t.Errorf("GET %s, %s: %d with %s %q, want 200 with %q", path, accept, resp.StatusCode, name, got, value)
				}
			}
			if text := unzip(t, coding, body); !bytes.Equal(text, plain) || path == "/openapi.json" && !bytes.Equal(text, s.document) {
				t.Errorf("GET %s, %s is not the file", path, accept)
			}
			again, none := page(t, s, "GET", path, accept, `If-None-Match: "x", W/`+etag)
			if again.StatusCode != 304 || len(none) > 0 || again.Header.Get("ETag") != etag || again.Header.Get("Content-Type") != "" {
				t.Errorf("GET %s, %s, If-None-Match: %d with %d bytes and %v, want 304 with %s", path, accept, again.StatusCode, len(none), again.Header, etag)
			}
			if head, _ := page(t, s, "HEAD", path, accept); head.StatusCode != 200 || head.Header.Get("ETag") != etag || head.ContentLength != int64(len(body)) {
				t.Errorf("HEAD %s, %s: %d with the length %d and ETag %s, want %d and %s", path, accept, head.StatusCode, head.ContentLength, head.Header.Get("ETag"), len(body), etag)
			}
			failed, text := page(t, s, "GET", path, accept, `If-Match: "x"`)
			if failed.StatusCode != 412 || failed.Header.Get("Content-Encoding") != "" || !bytes.Contains(text, []byte("precondition_failed")) || failed.Header.Get("Content-Type") != "application/json" {
				t.Errorf("GET %s, %s, If-Match: %d %v %.50q, want a readable 412", path, accept, failed.StatusCode, failed.Header, text)
			}
		}
		if len(tags) != 2 {
			t.Errorf("the two codings of %s have the validators %v, want two", path, tags)
		}
	}
}

// The catalog (RFC 9727) names the API, and files that exist, by the public address of the server
// if that is known. HEAD has a Link to it too.
func TestCatalog(t *testing.T) {
	t.Parallel()
	for production, public := range map[string]string{"": "", "https://pets.example/api/v1": "https://pets.example/api"} {
		s := start(t, func(c *api.Config) { c.Servers.Production = production })
		_, body := page(t, s, "GET", "/.well-known/api-catalog")
		type link struct{ Href, Type string }
		type linkset struct {
			Anchor string
			Desc   []link `json:"service-desc"`
			Doc    []link `json:"service-doc"`
		}
		var got struct{ Linkset []linkset }
		must(t, json.Unmarshal(body, &got))
		want := []linkset{{public + "/v1", []link{{public + "/openapi.json", "application/json"}}, []link{{public + "/docs", "text/html"}}}}
		if diff := cmp.Diff(want, got.Linkset); diff != "" {
			t.Errorf("catalog of a server at %q (-want +got):\n%s", production, diff)
		}
		for _, l := range slices.Concat(got.Linkset[0].Desc, got.Linkset[0].Doc) {
			resp, _ := page(t, s, "GET", strings.TrimPrefix(l.Href, public))
			if resp.StatusCode != 200 || !strings.HasPrefix(resp.Header.Get("Content-Type"), l.Type) {
				t.Errorf("GET %s: %d with %s, want 200 with %s", l.Href, resp.StatusCode, resp.Header.Get("Content-Type"), l.Type)
			}
		}
		for _, method := range []string{"GET", "HEAD"} {
			resp, _ := page(t, s, method, "/.well-known/api-catalog")
			if got := resp.Header.Get("Link"); got != `</.well-known/api-catalog>; rel="api-catalog"` {
				t.Errorf("%s: Link is %q, want the catalog", method, got)
			}
		}
	}
}

// Anything that is not such a file is answered, and charged, like a request for the API.
func TestPathsOfTheSite(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, target := range append(spellings("/openapi.json"), "/openapi.json?x=y") {
		if resp, body := page(t, s, "GET", target); resp.StatusCode != 200 || !bytes.Equal(body, s.document) {
			t.Errorf("GET %s: %d %.100s, want the document", target, resp.StatusCode, body)
		}
	}
	for _, target := range []string{"//openapi.json", "/openapi.yaml", "/docs/", "/docs/page.html", "/docs/..%2Fdocs", "/docs/docs.js/", "/Docs", "/.well-known/", "/.well-known/api-catalog/"} {
		want(t, s.Get(t, target), 404, "not_found")
	}
	for _, path := range []string{"/openapi.json", "/docs", "/.well-known/api-catalog"} {
		want(t, s.Do(t, none(contract.Request{Method: "POST", Target: path})), 405, "method_not_allowed")
		for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
			want(t, s.Do(t, none(contract.Request{Method: method, Target: path + "?" + strings.Repeat("x", 8192)})), 414, "uri_too_long")
		}
	}
}

func unzip(t *testing.T, coding string, body []byte) []byte {
	t.Helper()
	if coding == "" {
		return body
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	must(t, err)
	text, err := io.ReadAll(z)
	must(t, err)
	return text
}
