package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit/transport"
)

// Behind a transport that keeps within the limits of the backend, clients are told when
// to come back, the backend is left alone until then, and nobody is charged.
func TestLimitsOfTheBackend(t *testing.T) {
	var sent atomic.Int32
	proxy := to(t, func(w http.ResponseWriter, _ *http.Request) {
		sent.Add(1)
		setAll(w.Header(), "Retry-After: 30\nX-RateLimit-Limit: 7\nX-RateLimit-Remaining: 0")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	var err error
	if proxy.Transport, err = transport.New(transport.Options{MaxWait: -1}); err != nil {
		t.Fatal(err)
	}
	s := newStack(t, proxy, limit.Options{ChargeIf: limit.NotServerError})
	srv, client := listen(t, s, false)
	for range 3 {
		resp, body := send(t, client, "GET", srv.URL, nil)
		if resp.StatusCode != 503 || !strings.HasPrefix(body, `{"code":"unavailable",`) {
			t.Errorf("%d %s, want 503 unavailable", resp.StatusCode, body)
		}
		if got := resp.Header["Retry-After"]; len(got) != 1 || got[0] != "30" && got[0] != "29" {
			t.Errorf("Retry-After: %q, want 30", got)
		}
		wantMiddlewares(t, resp.Header)
	}
	if left := s.left(t); left != 10 || sent.Load() != 1 {
		t.Errorf("%d of 10 left, and %d requests sent to the backend; want 10 and 1", left, sent.Load())
	}
}

// untilRoom is the error of a transport that says how long the limit lasts.
type untilRoom struct {
	time.Duration
	cause error
}

func (u untilRoom) Error() string             { return "secret limit" }
func (u untilRoom) RetryAfter() time.Duration { return u.Duration }
func (u untilRoom) Unwrap() error             { return u.cause }

// Retry-After is never too short, and an error with a text of its own keeps it.
func TestRetryAfterOfTheTransport(t *testing.T) {
	for name, tt := range map[string]struct {
		err        error
		status     int
		retryAfter string
	}{
		"a part of a second":      {untilRoom{1001 * time.Millisecond, nil}, 503, "2"},
		"whole seconds":           {untilRoom{2 * time.Second, nil}, 503, "2"},
		"now":                     {untilRoom{0, nil}, 503, "1"},
		"a deadline":              {untilRoom{time.Minute, context.DeadlineExceeded}, 503, "60"},
		"wrapped":                 {fmt.Errorf("hop: %w", untilRoom{time.Minute, nil}), 503, "60"},
		"another answer":          {errTeapot.Wrap(untilRoom{time.Minute, nil}), 418, ""},
		"the same, another cause": {apierror.New(503, apierror.CodeUnavailable, "").Wrap(errSecret), 503, ""},
	} {
		t.Run(name, func(t *testing.T) {
			proxy := &httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}, Transport: failing(tt.err)}
			srv, client := listen(t, newStack(t, proxy, limit.Options{}), false)
			resp, body := send(t, client, "GET", srv.URL, nil)
			if resp.StatusCode != tt.status || resp.Header.Get("Retry-After") != tt.retryAfter || strings.Contains(body, "secret") {
				t.Errorf("%d, Retry-After: %q, %s; want %d, %q", resp.StatusCode, resp.Header.Get("Retry-After"), body, tt.status, tt.retryAfter)
			}
		})
	}
}
