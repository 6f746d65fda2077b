package limit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
)

// A sender sends requests from one address.
type sender struct {
	t       *testing.T
	handler http.Handler
}

// around returns a sender to a handler that answers 200 behind limit.
func around(t *testing.T, limit func(http.Handler) http.Handler) sender {
	return sender{t, limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))}
}

// send sends a request from addr with header lines given as name, value, name, value, and
// returns the response.
func (s sender) send(addr string, header ...string) *httptest.ResponseRecorder {
	s.t.Helper()
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = addr
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

// want sends a request and fails the test if its status is not the given one.
func (s sender) want(status int, addr string, header ...string) {
	s.t.Helper()
	if got := s.send(addr, header...).Code; got != status {
		s.t.Errorf("request from %s with %q: %d, want %d", addr, header, got, status)
	}
}

// perYear returns a quota whose window does not end during a test.
func perYear(n int64) ratelimit.Quota {
	return ratelimit.Quota{Limit: n, Window: fixedwindow.MaxLength}
}
