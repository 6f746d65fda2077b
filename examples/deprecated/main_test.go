package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestDeprecated(t *testing.T) {
	sunset := time.Date(2030, time.December, 5, 0, 0, 0, 0, time.UTC)
	for at, want := range map[time.Time]int{sunset.Add(-time.Second): 200, sunset: 410} {
		h := newHandler(func() time.Time { return at })
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/v1/pets/17", nil))
		if w.Code != want || w.Header().Get("Deprecation") != "@1764892800" {
			t.Errorf("at %v: status %d and Deprecation %q, want %d and @1764892800", at, w.Code, w.Header().Get("Deprecation"), want)
		}
	}
}

func beforeSunset() time.Time { return time.Date(2026, time.December, 1, 0, 0, 0, 0, time.UTC) }

// handlerTransport calls a handler without a network.
type handlerTransport struct{ http.Handler }

func (h handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	response := w.Result()
	response.Request = r // the successor is relative to its URL
	return response, nil
}

func TestClient(t *testing.T) {
	var out strings.Builder
	if err := call(&out, handlerTransport{newHandler(beforeSunset)}, "http://127.0.0.1:17/v1/pets/17"); err != nil {
		t.Fatal(err)
	}
	const want = "200 OK, deprecated since 2025-12-05, removed on 2030-12-05, replaced by http://127.0.0.1:17/v1/pets?status=available\n"
	if out.String() != want {
		t.Errorf("the client prints %q, want %q", &out, want)
	}
}
