package limit_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// Over HTTP/2 net/http notices a client that cancels at any time, whether or not the body
// was read.
func TestRefundOverHTTP2(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerDay(10))
	for name, c := range map[string]struct {
		body   func() io.Reader
		cancel bool
	}{
		"no body, stays":            {func() io.Reader { return nil }, false},
		"no body, cancels":          {func() io.Reader { return nil }, true},
		"body, stays":               {func() io.Reader { return strings.NewReader("hello") }, false},
		"body, cancels":             {func() io.Reader { return strings.NewReader("hello") }, true},
		"body without end, cancels": {func() io.Reader { r, _ := io.Pipe(); return r }, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := refunder{refunds: make(chan context.Context, 1)}
			started, ended := make(chan struct{}), make(chan struct{})
			h := handler(t, l, ratelimit.Caller{Subject: "a", Plan: plan}, limit.Options{ChargeIf: limit.NotServerError},
				func(w http.ResponseWriter, r *http.Request) {
					close(started)
					if c.cancel {
						<-r.Context().Done()
					}
					w.WriteHeader(http.StatusServiceUnavailable)
				})
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(ended)
				if r.ProtoMajor != 2 {
					t.Errorf("the request came over %s, want HTTP/2", r.Proto)
				}
				h.ServeHTTP(w, r)
			}))
			server.EnableHTTP2 = true
			server.StartTLS()
			defer server.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, c.body())
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				<-started
				if c.cancel {
					cancel()
				}
			}()
			resp, err := server.Client().Do(r)
			if err == nil {
				_ = resp.Body.Close()
			}
			if (err != nil) != c.cancel {
				t.Errorf("the client gets error %v, want one: %t", err, c.cancel)
			}
			<-ended
			if got := len(l.refunds) == 1; got == c.cancel {
				t.Errorf("refunded: %t, want %t", got, !c.cancel)
			}
		})
	}
}
