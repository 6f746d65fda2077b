package wire

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// start is the time at which each answer begins, 17 seconds before the next minute. The
// clock moves on only while a test sleeps.
var start = time.Date(2026, time.March, 1, 12, 0, 43, 0, time.UTC)

// plainRequest is what is sent if an answer needs no other request.
const plainRequest = "GET /v1/pets HTTP/1.1\nHost: api.example.com\n\n"

// exchange sends the request of an answer over TCP, and returns the bytes of the response.
// The bubble makes the time stand still for the server, its Date field included: a
// goroutine that waits for the network keeps the clock of the bubble from moving.
func exchange(t *testing.T, a answer) (response []byte) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(start))
		srv := httptest.NewServer(a.handler(t))
		defer srv.Close()
		conn := testcheck.Must(net.Dial("tcp", srv.Listener.Addr().String()))
		defer conn.Close()
		request := a.sent()
		testcheck.Must(io.WriteString(conn, strings.ReplaceAll(request, "\n", "\r\n")+a.rest))
		var received bytes.Buffer
		method, _, _ := strings.Cut(request, " ")
		reader := bufio.NewReader(io.TeeReader(conn, &received))
		res, err := http.ReadResponse(reader, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("no response: %v", err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Fatalf("the body of the response: %v", err)
		}
		if n := reader.Buffered(); n > 0 {
			t.Fatalf("%d bytes follow the response", n)
		}
		response = received.Bytes()
	})
	return response
}

// spend sends n requests before the one of the answer, with no connection.
func spend(h http.Handler, n int) {
	for range n {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/v1/pets", nil))
	}
}

// free is the plan of most answers.
var free = ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60), ratelimit.PerDay(1000))

// quiet writes errors without a log.
var quiet = &apierror.Responder{Logger: slog.New(slog.DiscardHandler)}

// pets serves the resource behind the middlewares.
var pets = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, `[{"id":1,"name":"Rex"}]`)
})

// newEngine returns an engine on the clock of the bubble.
func newEngine() *memory.Limiter {
	return testcheck.Must(memory.New(memory.Options{Now: time.Now}))
}

// owner is an owner of API keys with a plan.
func owner(plan *ratelimit.Plan) ratelimit.Caller {
	return ratelimit.Caller{Subject: "owner:ann", Plan: plan, Kind: ratelimit.KindAPIKey}
}

// limited returns pets behind a limiter for an owner that has used some units.
func limited(plan *ratelimit.Plan, used int64, opts limit.Options) state {
	return func(t *testing.T) http.Handler {
		engine := newEngine()
		use(t, engine, "owner:ann", plan, used)
		return counted(engine, owner(plan), opts)
	}
}

// use charges units to a subject under a plan, one by one.
func use(t *testing.T, l ratelimit.Limiter, subject string, plan *ratelimit.Plan, units int64) {
	for range units {
		if d, err := l.Take(t.Context(), subject, plan, 1); err != nil || !d.Allowed() {
			t.Fatalf("a unit of %s could not be used: %v, %v", subject, d.Outcome, err)
		}
	}
}

// counted returns pets behind a limiter for one caller.
func counted(l ratelimit.Limiter, c ratelimit.Caller, opts limit.Options) http.Handler {
	return limiter(l, c, opts)(pets)
}

// limiter returns a limiter for one caller.
func limiter(l ratelimit.Limiter, c ratelimit.Caller, opts limit.Options) func(http.Handler) http.Handler {
	opts.Errors = quiet
	identify := func(*http.Request) (ratelimit.Caller, error) { return c, nil }
	return testcheck.Must(limit.New(l, identify, opts))
}

// struck returns pets behind a limiter for a caller of a kind that has sent so many
// requests after it was limited, and after the grace.
func struck(kind ratelimit.Kind, strikes int) state {
	return func(t *testing.T) http.Handler {
		c := owner(free)
		c.Kind = kind
		h := counted(newEngine(), c, limit.Options{})
		spend(h, 61)
		time.Sleep(3 * time.Second)
		spend(h, strikes)
		return h
	}
}
