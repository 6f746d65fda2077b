package main

import (
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/examples/internal/readme"
)

// Of five requests at once, two run, one waits until one of them has finished, and two
// are refused.
func TestFiveAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := newHandler()
		if err != nil {
			t.Fatal(err)
		}
		type answer struct {
			status int
			after  time.Duration
		}
		began := time.Now()
		answers := make(chan answer)
		for range 5 {
			go func() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest("GET", "/report", nil))
				answers <- answer{w.Code, time.Since(began)}
			}()
		}
		counts := map[answer]int{}
		for range 5 {
			counts[<-answers]++
		}
		for want, n := range map[answer]int{{200, time.Second}: 2, {200, 2 * time.Second}: 1, {429, 0}: 2} {
			if counts[want] != n {
				t.Errorf("%d answers %v, want %d; all: %v", counts[want], want, n, counts)
			}
		}
	})
}

func TestReadme(t *testing.T) { readme.Server(t, newHandler) }
