package api_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/contract"
)

// page asks for a page, without a key and with these fields, in the way of a
// client that decodes nothing by itself.
func page(t testing.TB, s *service, method, target string, header ...string) (*http.Response, []byte) {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+s.Addr+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode < 400 {
		if got := resp.Header.Get("Cache-Control"); got != "no-cache" {
			t.Errorf("%s %s: Cache-Control is %q, want no-cache", method, target, got)
		}
		if got := resp.Header.Get("Vary"); got != "Accept-Encoding" {
			t.Errorf("%s %s: Vary is %q, want Accept-Encoding", method, target, got)
		}
	}
	return resp, body
}

// The document needs no key, and is as long as its Content-Length says.
func TestDocument(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	resp, body := page(t, s, "GET", "/openapi.json")
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/json" || !bytes.Equal(body, s.document) {
		t.Errorf("GET /openapi.json: %d %s %.100s, want the document", resp.StatusCode, resp.Header.Get("Content-Type"), body)
	}
	if head, _ := page(t, s, "HEAD", "/openapi.json"); head.StatusCode != 200 || head.ContentLength != int64(len(s.document)) {
		t.Errorf("HEAD /openapi.json: %d with %d bytes, want %d", head.StatusCode, head.ContentLength, len(s.document))
	}
	if part, body := page(t, s, "GET", "/openapi.json", "Range: bytes=0-9"); part.StatusCode != 200 || !bytes.Equal(body, s.document) {
		t.Errorf("GET /openapi.json of a range: %d with %d bytes, want all of it", part.StatusCode, len(body))
	}
	for _, target := range append(spellings("/openapi.json"), "/openapi.json?x=y") {
		if resp, body := page(t, s, "GET", target); resp.StatusCode != 200 || !bytes.Equal(body, s.document) {
			t.Errorf("GET %s: %d %.100s, want the document", target, resp.StatusCode, body)
		}
	}
	// Anything that is not such a page is answered, and charged, like a request for
	// the API.
	want(t, s.Get(t, "//openapi.json"), 404, "not_found")
	want(t, s.Get(t, "/openapi.yaml"), 404, "not_found")
	want(t, s.Do(t, contract.Request{Method: "DELETE", Target: "/openapi.json"}), 405, "method_not_allowed")
}

func TestDocumentIsCompressed(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, accept := range []string{
		"gzip", "GZip", "x-gzip", "deflate, gzip;q=1.0, *;q=0.5", "br , gzip;q=0.001", "*", "identity;q=0.5, gzip", "gzip, gzip;q=0", "identity;q=0, *",
		"zz;;, ;q=x, gzip",
	} {
		resp, body := page(t, s, "GET", "/openapi.json", "Accept-Encoding: "+accept)
		if resp.StatusCode != 200 || resp.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("Accept-Encoding %q: %d with the coding %q, want 200 gzip", accept, resp.StatusCode, resp.Header.Get("Content-Encoding"))
			continue
		}
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(z); err != nil || !bytes.Equal(text, s.document) {
			t.Errorf("Accept-Encoding %q: the body is not the document (%v)", accept, err)
		}
		if len(body) > len(s.document)/3 {
			t.Errorf("Accept-Encoding %q: %d bytes, want a third of %d at most", accept, len(body), len(s.document))
		}
	}
	for _, accept := range []string{
		"", "identity", "gzip;q=0", "gzip;q=0.0, *", "br", "*;q=0", "gzip;q=1.1", "gzip;q=-1", "gzip;q=", "gzip;q=1e0", "gzip;level=9", "gzip;q=0.5, identity",
		"gzi", "gzip gzip", strings.Repeat(",", 50000),
	} {
		resp, body := page(t, s, "GET", "/openapi.json", "Accept-Encoding: "+accept)
		if resp.Header.Get("Content-Encoding") != "" || !bytes.Equal(body, s.document) {
			t.Errorf("Accept-Encoding %.40q: the coding %q, want the document as it is", accept, resp.Header.Get("Content-Encoding"))
		}
	}
}

// Each coding has a validator of its own, and a client that has the representation
// does not get it again.
func TestDocumentIsRevalidated(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	tags := make(map[string]bool)
	for _, accept := range []string{"gzip", "identity"} {
		accept := "Accept-Encoding: " + accept
		resp, _ := page(t, s, "GET", "/openapi.json", accept)
		etag := resp.Header.Get("ETag")
		tags[etag] = true
		for _, have := range []string{etag, `"x", W/` + etag, "*"} {
			again, body := page(t, s, "GET", "/openapi.json", accept, "If-None-Match: "+have)
			if again.StatusCode != 304 || len(body) > 0 || again.Header.Get("ETag") != etag {
				t.Errorf("%s, If-None-Match %s: %d with %d bytes, ETag %s, want 304 with %s", accept, have, again.StatusCode, len(body), again.Header.Get("ETag"), etag)
			}
		}
		if other, _ := page(t, s, "GET", "/openapi.json", accept, `If-None-Match: "x"`); other.StatusCode != 200 {
			t.Errorf("%s with another ETag: %d, want 200", accept, other.StatusCode)
		}
		if head, _ := page(t, s, "HEAD", "/openapi.json", accept); head.Header.Get("ETag") != etag || head.ContentLength != resp.ContentLength {
			t.Errorf("%s, HEAD: ETag %s and %d bytes, want those of GET: %s and %d", accept, head.Header.Get("ETag"), head.ContentLength, etag, resp.ContentLength)
		}
		failed, body := page(t, s, "GET", "/openapi.json", accept, `If-Match: "x"`)
		if failed.StatusCode != 412 || failed.Header.Get("Content-Encoding") != "" || !bytes.Contains(body, []byte("precondition_failed")) {
			t.Errorf("%s, If-Match: %d %q %.50q, want a readable 412", accept, failed.StatusCode, failed.Header.Get("Content-Encoding"), body)
		}
	}
	if len(tags) != 2 {
		t.Errorf("the two codings have the validators %v, want two", tags)
	}
}
