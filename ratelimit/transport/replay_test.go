package transport_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/animalstore/gatehouse/internal/testcheck"
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
	r := testcheck.Must(http.NewRequestWithContext(t.Context(), "POST", url, body))
	return r
}

// The body is sent again, and the request of the caller is not changed.
func TestReplaysABody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429 Retry-After: 17", "429 Retry-After: 17")
		r := post(t, strings.NewReader("pet"))
		r.Header.Set("Accept", "application/json")
		body := r.Body
		if got := send(newTransport(t, s, transport.Options{}), r); got != "200" {
			t.Errorf("the caller gets %q, want 200", got)
		}
		if r.Body != body || len(r.Header) != 1 {
			t.Errorf("the request has another body or the header %v", r.Header)
		}
		s.expect(t, "0s pet", "17s pet", "34s pet")
	})
}

// A body that cannot be read twice is sent once, and closed also if it is not sent.
func TestDoesNotReplayAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429 Retry-After: 17", "429 Retry-After: 3600")
		rt := newTransport(t, s, transport.Options{})
		for i, want := range []string{"since it has no GetBody", "MaxWait (2m0s)", "MaxWait (2m0s)"} { // the second waits, since it was not sent yet
			body := &closing{Reader: strings.NewReader("pet")}
			_, err := rt.RoundTrip(post(t, body))
			if limit := limitOf(t, err); limit.Status != 429 || !strings.HasSuffix(err.Error(), want) || body.closed != 1 {
				t.Errorf("request %d: %v, and the body was closed %d times; want an error that ends with %q, and once", i+1, err, body.closed, want)
			}
		}
		s.expect(t, "0s pet", "17s pet")
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

// A service that answers 503 may have begun with the request: only one that may be sent
// twice waits for it, or fails immediately. The next ones do so whatever they are.
func TestUnavailable(t *testing.T) {
	const long = "api.example.com limits this client until 2000-01-01T01:00:17Z (503): the request would wait longer than Options.MaxWait (2m0s)"
	once, again := []string{"503 full", "200 served", "503 full", long}, []string{"200 served", long, long}
	for name, test := range map[string]struct {
		method string
		header string
		body   io.Reader
		want   []string
	}{
		"GET":                     {method: "GET", want: again},
		"no method, which is GET": {method: "", want: again},
		"PUT":                     {method: "PUT", body: strings.NewReader("pet"), want: again},
		"DELETE":                  {method: "DELETE", want: again},
		"QUERY":                   {method: "QUERY", body: strings.NewReader("pet"), want: again},
		"QUERY of a stream":       {method: "QUERY", body: &closing{Reader: strings.NewReader("pet")}, want: once},
		"POST":                    {method: "POST", body: strings.NewReader("pet"), want: once},
		"PATCH":                   {method: "PATCH", body: strings.NewReader("pet"), want: once},
		"POST with a key":         {method: "POST", body: strings.NewReader("pet"), header: "Idempotency-Key", want: again},
		"POST with an X- key":     {method: "POST", body: strings.NewReader("pet"), header: "X-Idempotency-Key", want: again},
		"PUT of a stream":         {method: "PUT", body: &closing{Reader: strings.NewReader("pet")}, want: once},
	} {
		inBubble(t, name, func(t *testing.T) {
			rt := newTransport(t, newScript("503 Retry-After: 17\n\nfull", "200 \n\nserved", "503 Retry-After: 3600\n\nfull"), transport.Options{})
			for i, want := range test.want {
				r := testcheck.Must(http.NewRequestWithContext(t.Context(), test.method, url, test.body))
				r.Method = test.method
				if r.Body == nil {
					r.Body = http.NoBody // and no GetBody: so a reverse proxy sends it
				}
				r.Header[test.header] = []string{"17"}
				if got := send(rt, r); got != want {
					t.Errorf("request %d: the caller gets %q, want %q", i+1, got, want)
				}
			}
		})
	}
}
