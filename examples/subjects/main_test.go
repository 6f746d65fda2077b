package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/examples/internal/readme"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// The subject that refuses decides the answer, and the others keep what they had.
func TestSubjects(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC)
	h, err := newHandler(memory.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	send := func(user, path string, times, status int, limit, left string) {
		t.Helper()
		for range times {
			r := httptest.NewRequest("GET", path, nil)
			if user != "" {
				r.SetBasicAuth(user, "")
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != status {
				t.Fatalf("%s of %q: got %d %s, want %d", path, user, w.Code, w.Body, status)
			}
			if times > 1 {
				continue // each has another number left
			}
			if l, n := w.Header().Get("X-RateLimit-Limit"), w.Header().Get("X-RateLimit-Remaining"); l != limit || n != left {
				t.Errorf("%s of %q: %s of %s left, want %s of %s", path, user, n, l, left, limit)
			}
		}
	}
	send("", "/items", 1, 401, "", "")
	send("ann@acme", "/search", 1, 200, "5", "4") // of her searches
	send("ann@acme", "/search", 4, 200, "", "")
	send("ann@acme", "/search", 1, 429, "5", "0")
	send("ann@acme", "/items", 1, 200, "20", "14") // of her requests: the refused one is not counted
	send("ann@acme", "/items", 13, 200, "", "")
	send("ann@acme", "/items", 1, 200, "20", "0")
	send("ann@acme", "/items", 1, 429, "20", "0")
	send("bob@acme", "/items", 1, 200, "30", "9") // of the organisation, which ann has used 20 times
	send("bob@acme", "/items", 9, 200, "", "")
	send("bob@acme", "/items", 1, 429, "30", "0")
	send("eve@other", "/items", 1, 200, "20", "19")
}

func TestReadme(t *testing.T) {
	readme.Server(t, func() (http.Handler, error) { return newHandler(memory.Options{}) })
}
