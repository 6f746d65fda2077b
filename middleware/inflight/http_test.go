package inflight_test

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/inflight"
)

// overBoth runs a test over HTTP/1.1 and HTTP/2.
func overBoth(t *testing.T, test func(t *testing.T, start func(http.Handler) *httptest.Server)) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			test(t, func(h http.Handler) *httptest.Server {
				s := httptest.NewUnstartedServer(h)
				s.EnableHTTP2 = http2
				s.Config.ErrorLog = log.New(io.Discard, "", 0) // of panics
				s.StartTLS()
				t.Cleanup(s.Close)
				return s
			})
		})
	}
}

// get sends a request of ann, and returns the status, or 0 if there was no response.
func get(ctx context.Context, s *httptest.Server) int {
	r := testcheck.Must(http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil))
	r.Header.Set("Subject", "ann")
	resp, err := s.Client().Do(r)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode
}

// eventually waits until the numbers of l are as ok wants them.
func eventually(t *testing.T, l *inflight.Limiter, what string, ok func(inflight.Stats) bool) {
	t.Helper()
	for !ok(l.Stats()) {
		select {
		case <-t.Context().Done():
			t.Fatalf("%s: the test ended with %+v", what, l.Stats())
		case <-time.After(time.Millisecond):
		}
	}
}

func nothingRuns(s inflight.Stats) bool { return s.Running == 0 && s.Subjects == 0 }

// A request whose client has gone (over HTTP/2: has reset the stream) counts until its
// handler returns, so that a client cannot have more of them than the limit.
func TestClientGoes(t *testing.T) {
	overBoth(t, func(t *testing.T, start func(http.Handler) *httptest.Server) {
		l, room := newLimiter(1, inflight.Options{}), newRoom()
		s := start(l.Middleware(room))
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan int)
		go func() { gone <- get(ctx, s) }()
		inside := <-room.entered
		cancel()
		<-gone
		<-inside.Context().Done()
		if got := get(t.Context(), s); got != 429 {
			t.Errorf("while the handler of the abandoned request still runs: %d, want 429", got)
		}
		close(room.leave)
		eventually(t, l, "after the handler of the abandoned request", nothingRuns)
		if got := get(t.Context(), s); got != 200 {
			t.Errorf("after it: %d, want 200", got)
		}
	})
}
