package api_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/contract"
)

// The document is for everybody, and counts for nobody.
func TestDocument(t *testing.T) {
	s := start(t, nil)
	get := func(method, etag string) (*http.Response, []byte) {
		t.Helper()
		r, err := http.NewRequest(method, "http://"+s.Addr+"/openapi.json", nil)
		if err != nil {
			t.Fatal(err)
		}
		if etag != "" {
			r.Header.Set("If-None-Match", etag)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Header.Get("X-RateLimit-Limit") != "" || resp.Header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: the header section is %v, want no limit, and to be asked again", method, resp.Header)
		}
		return resp, body
	}
	resp, body := get("GET", "")
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/json" || !bytes.Equal(body, s.document) {
		t.Errorf("GET /openapi.json: %d %s %.100s, want the document", resp.StatusCode, resp.Header.Get("Content-Type"), body)
	}
	if head, _ := get("HEAD", ""); head.StatusCode != 200 || head.ContentLength != int64(len(s.document)) {
		t.Errorf("HEAD /openapi.json: %d with %d octets, want %d", head.StatusCode, head.ContentLength, len(s.document))
	}
	if again, _ := get("GET", resp.Header.Get("ETag")); again.StatusCode != 304 {
		t.Errorf("GET /openapi.json with its ETag: %d, want 304", again.StatusCode)
	}
	// Its path can be spelled in other ways, too.
	for _, target := range spellings("/openapi.json") {
		resp, err := http.Get("http://" + s.Addr + target)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 200 || resp.Header.Get("X-RateLimit-Limit") != "" {
			t.Errorf("GET %s: %d %v, want the document, not counted", target, resp.StatusCode, resp.Header)
		}
	}
	// What is no such page is answered, and counted, like everything else.
	want(t, s.Get(t, "//openapi.json"), 404, "not_found")
	want(t, s.Get(t, "/openapi.yaml"), 404, "not_found")
	want(t, s.Do(t, contract.Request{Method: "DELETE", Target: "/openapi.json"}), 405, "method_not_allowed")
}
