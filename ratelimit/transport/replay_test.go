package transport_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/animalstore/gatehouse/ratelimit/transport"
)

// closing counts how often a body is closed.
type closing struct {
	io.Reader
	closed int
}

func (c *closing) Close() error { c.closed++; return nil }

func post(t *testing.T, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", url, body)
	must(t, err)
	return r
}

func TestReplaysABody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429 Retry-After: 17", "429 Retry-After: 17")
		if got := send(newTransport(t, s, transport.Options{}), post(t, strings.NewReader("pet"))); got != "200" {
			t.Errorf("the caller gets %q, want 200", got)
		}
		s.expect(t, "0s pet", "17s pet", "34s pet")
	})
}

// A body that cannot be read twice is sent once.
func TestDoesNotReplayAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429 Retry-After: 17")
		rt := newTransport(t, s, transport.Options{})
		body := &closing{Reader: strings.NewReader("pet")}
		_, err := rt.RoundTrip(post(t, body))
		if limit := limitOf(t, err); limit.Status != 429 || !strings.Contains(err.Error(), "no GetBody") {
			t.Errorf("the error is %v, want that the body cannot be sent again", err)
		}
		s.expect(t, "0s pet")

		// During the pause the next one waits, since it was not sent yet.
		if got := send(rt, post(t, &closing{Reader: strings.NewReader("pet")})); got != "200" {
			t.Errorf("the next request gets %q, want 200", got)
		}
		s.expect(t, "0s pet", "17s pet")
	})
}

// RoundTrip closes the body also of a request that it does not send.
func TestClosesTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newTransport(t, newScript("429 Retry-After: 3600"), transport.Options{})
		for i := range 2 {
			body := &closing{Reader: strings.NewReader("pet")}
			if _, err := rt.RoundTrip(post(t, body)); err == nil || body.closed != 1 {
				t.Errorf("request %d: %v, and the body was closed %d times; want an error, and once", i+1, err, body.closed)
			}
		}
	})
}

// The request of the caller is not changed.
func TestDoesNotChangeTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := post(t, strings.NewReader("pet"))
		r.Header.Set("Accept", "application/json")
		body := r.Body
		send(newTransport(t, newScript("429 Retry-After: 1"), transport.Options{}), r)
		if r.Body != body || len(r.Header) != 1 {
			t.Errorf("the request has another body or the header %v", r.Header)
		}
	})
}

func TestGetBodyFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := post(t, strings.NewReader("pet"))
		gone := errors.New("file is gone")
		r.GetBody = func() (io.ReadCloser, error) { return nil, gone }
		s := newScript("429 Retry-After: 1")
		if _, err := newTransport(t, s, transport.Options{}).RoundTrip(r); !errors.Is(err, gone) {
			t.Errorf("the error is %v, want that of GetBody", err)
		}
		s.expect(t, "0s pet")
	})
}

// A service that answers 503 may have begun with the request.
func TestUnavailable(t *testing.T) {
	for name, test := range map[string]struct {
		method string
		header http.Header
		body   io.Reader
		again  bool
	}{
		"GET":                     {method: "GET", again: true},
		"no method, which is GET": {method: "", again: true},
		"PUT":                     {method: "PUT", body: strings.NewReader("pet"), again: true},
		"DELETE":                  {method: "DELETE", again: true},
		"POST":                    {method: "POST", body: strings.NewReader("pet")},
		"PATCH":                   {method: "PATCH", body: strings.NewReader("pet")},
		"POST with a key":         {method: "POST", body: strings.NewReader("pet"), header: http.Header{"Idempotency-Key": {"17"}}, again: true},
		"POST with an X- key":     {method: "POST", body: strings.NewReader("pet"), header: http.Header{"X-Idempotency-Key": {"17"}}, again: true},
		"PUT of a stream":         {method: "PUT", body: &closing{Reader: strings.NewReader("pet")}},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newScript("503 Retry-After: 17\n\nfull", "200 \n\nserved")
			r, err := http.NewRequestWithContext(t.Context(), test.method, url, test.body)
			must(t, err)
			r.Method = test.method
			for name, values := range test.header {
				r.Header[name] = values
			}
			want := "503 full"
			if test.again {
				want = "200 served"
			}
			if got := send(newTransport(t, s, transport.Options{}), r); got != want {
				t.Errorf("the caller gets %q, want %q", got, want)
			}
		})
	}
}

// A long 503 is for the caller; requests during its time are not sent.
func TestUnavailableForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("503 Retry-After: 3600\nContent-Type: application/json\n\n{}")
		rt := newTransport(t, s, transport.Options{})
		if got := get(t, rt, url); got != "503 {}" {
			t.Errorf("the caller gets %q, want the response with its body", got)
		}
		const want = "api.example.com limits this client until 2000-01-01T01:00:00Z (503): the request would wait longer than Options.MaxWait (2m0s)"
		if got := get(t, rt, url); got != want {
			t.Errorf("the next caller gets %q, want %q", got, want)
		}
		s.expect(t, "0s")
	})
}
