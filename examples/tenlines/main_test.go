package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

// get returns the response to a request of user, or without a user if that is "".
func get(h http.Handler, user string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "/pets", nil)
	if user != "" {
		r.SetBasicAuth(user, "")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestPlans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newRouter()
		for user, limit := range map[string]int64{"ann": 60, "bob": 600, "": 60} {
			w := get(h, user)
			ratelimittest.CheckHeaders(t, w.Header(), ratelimittest.Fields{Limit: limit, Remaining: limit - 1})
			if want := fmt.Sprintf("the pets of %s\n", user); w.Code != 200 || w.Body.String() != want {
				t.Errorf("GET of %q: %d %q, want 200 %q", user, w.Code, w.Body, want)
			}
		}
	})
}

// A user is banned. A network is not, since the people behind it do not see the 429 of
// each other.
func TestBans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newRouter()
		for _, c := range []struct {
			user, code string
			wait       time.Duration
		}{
			{"ann", "client_banned", time.Minute},
			{"", "rate_limit_exceeded", 57 * time.Second},
		} {
			for range 61 {
				get(h, c.user)
			}
			time.Sleep(3 * time.Second) // the grace for requests that were in flight
			for range 11 {
				get(h, c.user)
			}
			w := get(h, c.user)
			ratelimittest.CheckHeaders(t, w.Header(), ratelimittest.Fields{Limit: 60, RetryAfter: c.wait})
			if w.Code != 429 || !strings.Contains(w.Body.String(), c.code) {
				t.Errorf("12 requests of %q after the grace: %d %s, want %s", c.user, w.Code, w.Body, c.code)
			}
			time.Sleep(57 * time.Second) // the next minute
		}
		if w := get(h, "bob"); w.Code != 200 {
			t.Errorf("GET of another user: %d, want 200", w.Code)
		}
	})
}
