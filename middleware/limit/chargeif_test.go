package limit_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// ChargeIf is asked once, about the final status, and decides whether a request stays
// charged.
func TestChargeIf(t *testing.T) {
	flush := func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }
	for _, tt := range []struct {
		name   string
		next   http.HandlerFunc
		status int // 0: not asked
	}{
		{"a status", status(401), 401},
		{"not modified", status(304), 304},
		{"nothing written", func(http.ResponseWriter, *http.Request) {}, 200},
		{"a body alone", ok, 200},
		{"a flush alone", func(w http.ResponseWriter, _ *http.Request) { flush(w) }, 200},
		{"an empty body by io.Copy", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, strings.NewReader("")) }, 200},
		{"two statuses", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(401)
			w.Header().Set("A", "b")
			_, _ = io.WriteString(w, "no")
		}, 401},
		{"1xx first", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(401) }, 401},
		{"1xx alone", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103) }, 200},
		{"switching protocols", status(101), 101},
		{"a stream", func(w http.ResponseWriter, _ *http.Request) {
			for range 3 {
				_, _ = io.WriteString(w, "event\n")
				flush(w)
			}
		}, 200},
		{"a panic", func(http.ResponseWriter, *http.Request) { panic("first") }, 500},
		{"a panic after 1xx", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); panic("early hints") }, 500},
		{"a panic in the body", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "half"); panic("half") }, 500},
		{"an aborted response", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401); panic(http.ErrAbortHandler) }, 500},
		{"a panic after switching protocols", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(101); panic("late") }, 101},
	} {
		for _, charge := range []bool{true, false} {
			l := refunder{refunds: make(chan context.Context, 1)}
			var asked []int
			h := handler(t, l, ratelimit.Caller{Subject: "a", Plan: tokens}, limit.Options{
				ChargeIf: func(_ *http.Request, status int) bool {
					asked = append(asked, status)
					return charge
				},
			}, tt.next)
			func() {
				defer func() { _ = recover() }()
				h.ServeHTTP(&strictRecorder{httptest.NewRecorder()}, httptest.NewRequest("GET", "/", nil))
			}()
			if !slices.Equal(asked, []int{tt.status}) {
				t.Errorf("%s: ChargeIf was asked about %v, want one question about %d", tt.name, asked, tt.status)
			}
			if given := len(l.refunds) == 1; given == charge {
				t.Errorf("%s, ChargeIf returns %t: given back is %t", tt.name, charge, given)
			}
		}
	}
}

// strictRecorder knows informational responses, which a ResponseRecorder takes for the
// final one.
type strictRecorder struct{ *httptest.ResponseRecorder }

func (r *strictRecorder) WriteHeader(status int) {
	if status >= 200 || status == 101 {
		r.ResponseRecorder.WriteHeader(status)
	}
}

// Failed sign-ins alone use up the limit; the others are given back.
func TestChargeIfCounts(t *testing.T) {
	at := time.Unix(now, 0)
	l := newEngine(t, &at)
	code := 200
	h := handler(t, l, ratelimit.Caller{Subject: "a", Plan: ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerDay(3))}, limit.Options{
		ChargeIf: func(_ *http.Request, status int) bool { return status == 401 },
	}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
	for _, step := range []struct {
		code, want int
		remaining  string
	}{{200, 200, "2"}, {500, 500, "2"}, {401, 401, "2"}, {200, 200, "1"}, {401, 401, "1"}, {401, 401, "0"}, {200, 429, "0"}} {
		code = step.code
		w := get(h)
		if w.Code != step.want || w.Header().Get("X-RateLimit-Remaining") != step.remaining {
			t.Errorf("handler with %d: got %d with %s remaining, want %d with %s",
				step.code, w.Code, w.Header().Get("X-RateLimit-Remaining"), step.want, step.remaining)
		}
	}
}

// ChargeIf is not asked about what was not charged.
func TestChargeIfOfWhatWasNotCharged(t *testing.T) {
	opts := limit.Options{
		FailOpen: true,
		ChargeIf: func(*http.Request, int) bool { t.Error("ChargeIf was asked"); return false },
	}
	for name, c := range map[string]ratelimit.Caller{
		"unlimited": {Subject: "a", Plan: ratelimit.UnlimitedPlan("u")}, "suspended": {Subject: "a", Plan: ratelimit.SuspendedPlan("s")},
		"an engine that is down": {Subject: "down", Plan: tokens},
	} {
		l := downFor{refunder{refunds: make(chan context.Context, 1)}}
		get(handler(t, l, c, opts, ok))
		if len(l.refunds) > 0 {
			t.Errorf("%s: something was given back", name)
		}
	}
}

type downFor struct{ refunder }

func (l downFor) Take(ctx context.Context, subject string, p *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	if subject == "down" {
		return ratelimit.Decision{}, ratelimit.ErrUnavailable
	}
	return l.refunder.Take(ctx, subject, p, cost)
}

// A client that disconnects stays charged; one that stays is given back, whether or not
// the handler read its body.
func TestChargeIfOfClientsThatHangUp(t *testing.T) {
	opts := limit.Options{ChargeIf: func(_ *http.Request, status int) bool { return status == 401 }}
	read := func(w http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body); ok(w, r) }
	untilGone := func(w http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body); <-r.Context().Done() }
	for _, tt := range []struct {
		name, request string
		hangUp        bool
		work          http.HandlerFunc
		given         bool
	}{
		{"stays, no body", bodyless, false, ok, true},
		{"stays, body read", withBody, false, read, true},
		{"stays, body unread", withBody, false, ok, true},
		{"stays, 401", withBody, false, status(401), false},
		{"hangs up, no body", bodyless, true, untilGone, false},
		{"hangs up, body read", withBody, true, untilGone, false},
		{"hangs up, body unread", withBody, true, ok, false},
		{"hangs up, 401", withBody, true, status(401), false},
	} {
		if given := exchangeWith(t, opts, tt.request, tt.hangUp, tt.work); given != tt.given {
			t.Errorf("%s: given back is %t, want %t", tt.name, given, tt.given)
		}
	}
}

// A connection that the handler takes over counts as 101, whatever is written to it.
func TestChargeIfOfAHijackedConnection(t *testing.T) {
	for _, charge := range []bool{true, false} {
		asked := 0
		opts := limit.Options{
			ChargeIf: func(_ *http.Request, status int) bool { asked = status; return charge },
		}
		given := exchangeWith(t, opts, bodyless, false, func(w http.ResponseWriter, _ *http.Request) {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = conn.Close() }()
			_, _ = rw.WriteString("HTTP/1.1 503 Later\r\nContent-Length: 0\r\n\r\n")
			_ = rw.Flush()
		})
		if asked != 101 || given == charge {
			t.Errorf("asked about %d, and given back is %t; want 101 and %t", asked, given, !charge)
		}
	}
}

// The route is known when ChargeIf is asked, also if the request was copied.
func TestChargeIfSeesThePattern(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", status(401))
	for _, opts := range []limit.Options{{}, {Context: true}} {
		pattern := ""
		opts.ChargeIf = func(r *http.Request, _ int) bool { pattern = r.Pattern; return true }
		h := handler(t, refunder{refunds: make(chan context.Context, 1)}, ratelimit.Caller{Subject: "a", Plan: tokens}, opts, mux.ServeHTTP)
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/login", strings.NewReader("{}")))
		if pattern != "POST /login" {
			t.Errorf("ChargeIf saw the pattern %q", pattern)
		}
	}
}
