package middleware_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// serve has h answer r, and returns the response.
func serve(h http.Handler, r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// code returns the code in the error envelope that is resp's body.
func code(t *testing.T, resp *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var envelope struct{ Code string }
	if err := json.Unmarshal(body, &envelope); err != nil {
		t.Fatalf("body %q is not the error envelope: %v", body, err)
	}
	return envelope.Code
}

// ok answers 200.
var ok = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {})

// discard is a ResponseWriter that allocates nothing once its header has been
// used.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
