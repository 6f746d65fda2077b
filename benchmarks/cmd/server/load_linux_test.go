package main

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
)

func TestALoadWantsTheStatus(t *testing.T) {
	address := host(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/missing" {
			w.WriteHeader(404)
		}
		w.Write([]byte("pets"))
	})
	l := load{address: address, request: get("/", ""), total: 200}
	took, err := l.run(t.Context())
	if err != nil || len(took) != 200 {
		t.Errorf("run = %d latencies, %v, want 200", len(took), err)
	}
	l.request = get("/missing", "")
	_, err = l.run(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "GET /missing: answered with 404, want 200:\nHTTP/1.1 404 Not Found\r\n") {
		t.Errorf("run = %v, want an error about the status 404 and the answer", err)
	}
}

// A server that stalls delays the requests that could not be sent meanwhile, and their
// latencies count the whole delay (no coordinated omission).
func TestAStallCountsForAllRequestsThatWereDue(t *testing.T) {
	const stall = 50 * time.Millisecond
	var first sync.Once
	var end time.Time
	address := host(t, func(w http.ResponseWriter, r *http.Request) {
		first.Do(func() { end = time.Now().Add(stall) })
		time.Sleep(time.Until(end))
	})
	l := load{address: address, request: get("/", ""), perS: 5000, duration: 2 * stall}
	took := testcheck.Must(l.run(t.Context()))
	slow := 0
	for _, d := range took {
		if d >= stall/2 {
			slow++
		}
	}
	// That is 125 requests, of which only 64 could be sent.
	if want := int(l.perS * (stall / 2).Seconds()); slow < want {
		t.Errorf("%d requests took at least %v, want %d: those that were due in the first half of a stall of %v", slow, stall/2, want, stall)
	}
	if want := int(l.perS * l.duration.Seconds()); len(took) != want {
		t.Errorf("%d requests in %v, want %d", len(took), l.duration, want)
	}
}
