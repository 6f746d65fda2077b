package transport_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit/transport"
)

var must = testcheck.NoError

// script is a server that gives its answers in order, and 200 after the last. It keeps
// when each request arrived, and its body.
type script struct {
	begin time.Time

	mu      sync.Mutex
	answers []string // "429 Retry-After: 17" with a line for each field, then a blank line and a body
	arrived []string
}

func newScript(answers ...string) *script {
	return &script{begin: time.Now(), answers: answers}
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body.Close()
		body = string(b)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrived = append(s.arrived, strings.TrimSpace(fmt.Sprint(time.Since(s.begin).Round(time.Millisecond), " ", body)))
	answer := "200"
	if len(s.answers) > 0 {
		answer, s.answers = s.answers[0], s.answers[1:]
	}
	if answer == "broken" {
		return nil, errBroken
	}
	return respond(r, answer), nil
}

var errBroken = errors.New("connection reset")

// respond makes a response from its text.
func respond(r *http.Request, answer string) *http.Response {
	head, body, _ := strings.Cut(answer, "\n\n")
	status, fields, _ := strings.Cut(head, " ")
	w := httptest.NewRecorder()
	w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
	for line := range strings.Lines(fields) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if name != "" {
			w.Header().Set(name, value)
		}
	}
	var code int
	fmt.Sscan(status, &code)
	w.WriteHeader(code)
	io.WriteString(w, body)
	resp := w.Result()
	resp.Request = r
	return resp
}

// expect compares when requests arrived, and their bodies.
func (s *script) expect(t *testing.T, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := strings.Join(s.arrived, ", "); got != strings.Join(want, ", ") {
		t.Errorf("requests arrived at %s; want %s", got, strings.Join(want, ", "))
	}
}

// newTransport returns a Transport without jitter.
func newTransport(t *testing.T, base http.RoundTripper, opts transport.Options) *transport.Transport {
	t.Helper()
	opts.Base = base
	rt := testcheck.Must(transport.New(opts))
	transport.SetJitter(rt, func(time.Duration) time.Duration { return 0 })
	return rt
}

// get sends a GET and returns the status, or the error without its prefix.
func get(t *testing.T, rt http.RoundTripper, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		return err.Error()
	}
	return send(rt, r)
}

func send(rt http.RoundTripper, r *http.Request) string {
	resp, err := rt.RoundTrip(r)
	if err != nil {
		return strings.TrimPrefix(err.Error(), "transport: ")
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(fmt.Sprint(resp.StatusCode, " ", string(body)))
}

// limitOf returns the LimitError in err.
func limitOf(t *testing.T, err error) *transport.LimitError {
	t.Helper()
	var limit *transport.LimitError
	if !errors.As(err, &limit) {
		t.Fatalf("the error is %v, want a LimitError", err)
	}
	return limit
}

// inBubble runs a test with a clock of its own, at midnight UTC of 1 January 2000.
func inBubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}
