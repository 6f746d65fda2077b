package inflight_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/animalstore/gatehouse/middleware/inflight"
)

// bySubject counts requests by the header field Subject.
func bySubject(r *http.Request) (inflight.Caller, error) {
	return inflight.Caller{Subject: r.Header.Get("Subject")}, nil
}

func newLimiter(t *testing.T, limit int, opts inflight.Options) *inflight.Limiter {
	t.Helper()
	l, err := inflight.New(limit, bySubject, opts)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// request returns a request of a subject.
func request(subject string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Subject", subject)
	return r
}

// serve has h answer r, and returns the response.
func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// A room is a handler whose requests stay until they are let out.
type room struct {
	entered chan *http.Request // gets each request as it begins
	leave   chan struct{}      // lets one request end
}

func newRoom() room {
	return room{make(chan *http.Request, 100), make(chan struct{})}
}

func (m room) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.entered <- r
	<-m.leave
}

// code returns the code of the error in body.
func code(t *testing.T, body []byte) string {
	t.Helper()
	var envelope struct{ Code string }
	if err := json.Unmarshal(body, &envelope); err != nil {
		t.Fatalf("body %q is not the error envelope: %v", body, err)
	}
	return envelope.Code
}

// want compares what runs, waits and was refused.
func want(t *testing.T, l *inflight.Limiter, running, waiting, subjects int, refused uint64) {
	t.Helper()
	got := l.Stats()
	got.Admitted = 0
	if want := (inflight.Stats{Running: running, Waiting: waiting, Subjects: subjects, Refused: refused}); got != want {
		t.Errorf("Stats: %+v, want %+v", got, want)
	}
}
