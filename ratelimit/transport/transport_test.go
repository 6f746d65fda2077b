package transport_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/transport"
)

func TestNewRefuses(t *testing.T) {
	plan := planOf(ratelimit.PerMinute(60))
	for _, test := range []struct {
		opts transport.Options
		want string
	}{
		{transport.Options{Plan: plan}, "transport: Options.Plan needs Options.Limiter, which counts it, got nil or the zero memory.Limiter"},
		{transport.Options{Plan: plan, Limiter: (*memory.Limiter)(nil)}, "transport: Options.Plan needs Options.Limiter, which counts it, got nil or the zero memory.Limiter"},
		{transport.Options{Plan: plan, Limiter: &memory.Limiter{}}, "transport: Options.Plan needs Options.Limiter, which counts it, got nil or the zero memory.Limiter"},
		{transport.Options{Limiter: newEngine(t)}, "transport: Options.Limiter needs Options.Plan"},
		{transport.Options{Plan: ratelimit.UnlimitedPlan("all"), Limiter: newEngine(t)}, "transport: Options.Plan must have quotas"},
		{transport.Options{Base: (*http.Transport)(nil)}, "transport: Options.Base must not be a nil *http.Transport"},
	} {
		if _, err := transport.New(test.opts); err == nil || err.Error() != test.want {
			t.Errorf("New: %v, want %q", err, test.want)
		}
	}
}

// Requests with an empty key are sent as they are, and errors of the base are returned.
func TestEmptyKey(t *testing.T) {
	s := newScript("429 Retry-After: 17\n\nrefused", "429 Retry-After: 17\n\nrefused", "broken")
	opts := withPlan(t, ratelimit.PerDay(1))
	opts.Key = func(*http.Request) string { return "" }
	rt := newTransport(t, s, opts)
	for _, want := range []string{"429 refused", "429 refused", errBroken.Error()} {
		if got := get(t, rt, url); got != want {
			t.Errorf("the caller gets %q, want %q", got, want)
		}
	}
}

// A request without a URL is an error, as for http.Transport, and its body is closed.
func TestRequestWithoutURL(t *testing.T) {
	opts := withPlan(t, ratelimit.PerDay(1))
	opts.Key = func(*http.Request) string { return "same" }
	s := newScript()
	for _, o := range []transport.Options{{}, opts} {
		closed := false
		body := closeFunc(func() { closed = true })
		if got := send(newTransport(t, s, o), &http.Request{Method: "POST", Header: http.Header{}, Body: body}); got != "nil Request.URL" || !closed {
			t.Errorf("the caller gets %q, the body is closed: %t", got, closed)
		}
	}
	s.expect(t)
}

// A closeFunc is an empty body.
type closeFunc func()

func (closeFunc) Read([]byte) (int, error) { return 0, io.EOF }
func (f closeFunc) Close() error           { f(); return nil }

// bare is a response as tests of services make them.
type bare struct{ resp *http.Response }

func (b bare) RoundTrip(*http.Request) (*http.Response, error) { return b.resp, nil }

// A base of a test need not give its responses a body or fields.
func TestBareResponses(t *testing.T) {
	for status, want := range map[int]string{200: "200", 429: "limits this client", 503: "503"} {
		synctest.Test(t, func(t *testing.T) {
			rt := newTransport(t, bare{&http.Response{StatusCode: status}}, transport.Options{MaxWait: -1})
			if got := get(t, rt, url); !strings.Contains(got, want) {
				t.Errorf("%d without a header and a body: the caller gets %q, want %q", status, got, want)
			}
		})
	}
	r, _ := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if resp, err := newTransport(t, bare{}, transport.Options{}).RoundTrip(r); resp != nil || err != nil {
		t.Errorf("no response and no error: the caller gets %v, %v, want the same", resp, err)
	}
}

// A relative link has another target at each path, and is the same notice. A server that
// sends another notice each time does not fill the memory, or the log.
func TestReportsADeprecationOnce(t *testing.T) {
	const (
		deprecated = " 200 Deprecation: @1764892800\nSunset: Thu, 05 Dec 2030 00:00:00 GMT\nLink: </v2/pets>; rel=\"successor-version\""
		relative   = " 200 Deprecation: @1764892801\nLink: <?v=2>; rel=\"successor-version\""
	)
	steps := []string{
		"GET /pets/1" + deprecated, "GET /pets/2" + deprecated, "PUT /pets/1" + deprecated, "GET /pets/1" + deprecated,
		"GET /old 200 Deprecation: true", "GET /new 200", "PUT /pets/1" + deprecated, "GET /cats/1" + relative, "GET /cats/2" + relative,
	}
	for i := range 1100 {
		steps = append(steps, fmt.Sprintf("GET /n 200 Deprecation: @%d", i))
	}
	var got []string
	s := newScript()
	rt := newTransport(t, s, transport.Options{OnDeprecated: func(r *http.Request, n deprecation.Notice) {
		got = append(got, fmt.Sprint(r.Method, " ", r.URL.Path, " ", n.Since.Unix(), " ", n.Successor))
	}})
	for _, step := range steps {
		parts := strings.SplitN(step, " ", 3)
		s.answers = parts[2:]
		r := testcheck.Must(http.NewRequestWithContext(t.Context(), parts[0], "http://api.example.com"+parts[1], nil))
		send(rt, r)
	}
	want := []string{
		"GET /pets/1 1764892800 http://api.example.com/v2/pets", "PUT /pets/1 1764892800 http://api.example.com/v2/pets",
		"GET /old -62135596800 ", "GET /cats/1 1764892801 http://api.example.com/cats/1?v=2",
	}
	if len(got) != 1000 || !slices.Equal(got[:4], want) {
		t.Errorf("%d reports, which begin with\n%s\nwant 1000, which begin with\n%s", len(got), strings.Join(got[:4], "\n"), strings.Join(want, "\n"))
	}
}

// Without OnDeprecated the log has a line, without what can be secret.
func TestLogsADeprecation(t *testing.T) {
	const called = `WARN msg="called a deprecated operation" method=GET host=api.example.com path=/pets/1`
	for fields, want := range map[string]string{
		"Deprecation: @1764892800\nSunset: Thu, 05 Dec 2030 00:00:00 GMT\nLink: </v2/pets>; rel=\"successor-version\"": called +
			" since=2025-12-05T00:00:00.000Z sunset=2030-12-05T00:00:00.000Z successor=http://api.example.com/v2/pets",
		"Deprecation: @1764892800":                                  called + " since=2025-12-05T00:00:00.000Z",
		"Sunset: Thu, 05 Dec 2030 00:00:00 GMT":                     called + " sunset=2030-12-05T00:00:00.000Z",
		"Deprecation: true":                                         called,
		"Deprecation: true\nLink: <#v2>; rel=\"successor-version\"": called + ` successor=http://api.example.com/pets/1#v2`,
	} {
		var log bytes.Buffer
		old := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		get(t, newTransport(t, newScript("200 "+fields), transport.Options{}), "http://ann:secret@api.example.com/pets/1?token=secret")
		slog.SetDefault(old)
		if _, line, _ := strings.Cut(log.String(), "level="); strings.TrimSpace(line) != want {
			t.Errorf("%s: the log has\n%s\nwant\n%s", fields, line, want)
		}
	}
}

// Over a connection: the response of a served request is untouched, a refused one
// does not cost its connection, and http.Client wraps the error.
func TestOverTheNetwork(t *testing.T) {
	connections := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connections[r.RemoteAddr] = true
		if r.URL.Path == "/refused" {
			w.Header().Set("Retry-After", "3600")
			http.Error(w, strings.Repeat("no ", 10_000), http.StatusTooManyRequests)
			return
		}
		fmt.Fprint(w, "hello")
	}))
	defer server.Close()
	rt := newTransport(t, server.Client().Transport, transport.Options{Key: func(r *http.Request) string { return r.URL.Path }})
	client := &http.Client{Transport: rt, Timeout: time.Minute}
	for range 3 {
		if got := get(t, rt, server.URL); got != "200 hello" {
			t.Errorf("served: %q, want 200 hello", got)
		}
		_, err := client.Get(server.URL + "/refused")
		if limit := limitOf(t, err); limit.Status != 429 {
			t.Errorf("refused: %v, want a LimitError for 429", err)
		}
	}
	client.CloseIdleConnections()
	if len(connections) != 1 {
		t.Errorf("%d connections were used, want 1", len(connections))
	}
}
