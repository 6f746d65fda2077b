package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/examples/internal/readme"
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

// handlerTransport calls a handler without a network.
type handlerTransport struct{ http.Handler }

func (h handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	response := w.Result()
	response.Request = r // the successor is relative to its URL
	return response, nil
}

func TestReadme(t *testing.T) {
	readme.Program(t, func(out io.Writer) error {
		return call(out, handlerTransport{newHandler(time.Now)}, "http://127.0.0.1:17/v1/pets/17")
	})
}
