package main

import (
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

func TestHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // begins at midnight
		h := newHandler()
		for _, want := range []int{200, 200, 200, 200, 200, 429} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			if w.Code != want {
				t.Errorf("%v: %d, want %d", time.Now(), w.Code, want)
			}
		}
		time.Sleep(time.Minute)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if w.Code != 200 {
			t.Errorf("a minute later: %d, want 200", w.Code)
		}
	})
}
