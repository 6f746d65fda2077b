package main

import (
	"net/http/httptest"
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
