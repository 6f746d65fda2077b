package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/examples/internal/readme"
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

func TestReadme(t *testing.T) {
	readme.Server(t, func() (http.Handler, error) { return newHandler(), nil })
}
