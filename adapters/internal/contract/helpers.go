package contract

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// Errors drops what it logs.
var Errors = &apierror.Responder{Logger: slog.New(slog.DiscardHandler), RequestID: middleware.RequestIDFrom}

// Limiter returns a middleware that allows ann 3 requests a minute.
func Limiter(t *testing.T, o limit.Options) middleware.Middleware {
	t.Helper()
	o.Errors = Errors
	plan := ratelimit.MustPlan("three", ratelimit.Penalty{}, ratelimit.PerMinute(3))
	limited := testcheck.Must(limit.New(NewClock().Engine(t), Caller(ratelimit.Caller{Subject: "user:ann", Plan: plan}), o))
	return limited
}

// A Log holds the lines of an access log.
type Log struct {
	testcheck.Log
	read int // by Line
}

// Logger returns a logger that writes to l.
func (l *Log) Logger() *slog.Logger { return slog.New(slog.NewJSONHandler(l, nil)) }

// A Line is what a line of the access log says about a response.
type Line struct {
	Route   string
	Status  int
	Bytes   int
	Aborted bool
}

// Line returns the only line since the last call.
func (l *Log) Line(t *testing.T) (got Line) {
	t.Helper()
	text := l.String()[l.read:]
	l.read += len(text)
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("the log is not one line: %v\n%s", err, text)
	}
	return got
}

// An Answer is a response.
type Answer struct {
	Status int
	Header http.Header
	Body   string
	Err    error // of reading the body

	Wait time.Duration // as Retry-After or RetryInfo says
}

func (a Answer) envelope() (e apierror.Error) {
	_ = json.Unmarshal([]byte(a.Body), &e)
	return e
}

// Code and Message return those of the envelope.
func (a Answer) Code() string    { return string(a.envelope().Code) }
func (a Answer) Message() string { return a.envelope().Message }

// Remaining returns how many requests are left.
func (a Answer) Remaining() string { return a.Header.Get("X-RateLimit-Remaining") }

// A Send sends requests, with a token of ann unless others are given.
type Send = func(method, path, body string, authorization ...string) Answer

// Serve serves h.
func Serve(t *testing.T, h http.Handler) Send {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.Start()
	t.Cleanup(server.Close)
	return SendTo(t, server.URL)
}

// SendTo sends requests to a server.
func SendTo(t *testing.T, url string) Send {
	t.Helper()
	transport := new(http.Transport)
	t.Cleanup(transport.CloseIdleConnections)
	return func(method, path, body string, authorization ...string) Answer {
		t.Helper()
		r, err := http.NewRequest(method, url+path, strings.NewReader(body))
		testcheck.NoError(t, err)
		r.Header["Authorization"] = authorization
		if authorization == nil {
			r.Header.Set("Authorization", "Bearer ann")
		}
		res, err := transport.RoundTrip(r)
		if err != nil {
			return Answer{Err: err}
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		wait, _ := strconv.Atoi(res.Header.Get("Retry-After"))
		return Answer{res.StatusCode, res.Header, string(text), err, time.Duration(wait) * time.Second}
	}
}

// Two is a plan of two calls a minute.
var Two = ratelimit.MustPlan("two", ratelimit.Penalty{}, ratelimit.PerMinute(2), ratelimit.PerDay(100))

// Caller returns an identify function for one caller.
func Caller(c ratelimit.Caller) func(*http.Request) (ratelimit.Caller, error) {
	return func(*http.Request) (ratelimit.Caller, error) { return c, nil }
}

// A Clock is set by tests.
type Clock struct{ now atomic.Int64 }

// NewClock returns a clock that begins 17 seconds before the end of a minute.
func NewClock() *Clock {
	c := new(Clock)
	c.now.Store(time.Date(2026, 11, 22, 12, 0, 43, 0, time.UTC).UnixNano())
	return c
}

// Advance sets the clock forward.
func (c *Clock) Advance(d time.Duration) { c.now.Add(int64(d)) }

// Engine returns an engine that reads the clock.
func (c *Clock) Engine(t *testing.T) *memory.Limiter {
	t.Helper()
	limiter := testcheck.Must(memory.New(memory.Options{Now: func() time.Time { return time.Unix(0, c.now.Load()) }}))
	return limiter
}

// Used returns how many units of its first quota a subject has used.
func Used(t *testing.T, p engine.Peeker, subject string, plan *ratelimit.Plan) int64 {
	t.Helper()
	d := testcheck.Must(p.Peek(t.Context(), subject, plan))
	return engine.Of(plan).Quota(0).Limit - d.States[0].Remaining
}

// Logged returns a Responder and what it has logged.
func Logged() (*apierror.Responder, *Log) {
	log := new(Log)
	return &apierror.Responder{Logger: slog.New(slog.NewTextHandler(log, nil))}, log
}

// codes are the codes of gRPC and Connect for the statuses of the tests.
var codes = map[int]uint32{200: 0, 400: 3, 404: 5, 403: 7, 429: 8, 500: 13, 503: 14, 401: 16}

// Code returns the code for a status.
func Code(status int) uint32 { return codes[status] }

// Refused returns what the client sees of a call that ended with a code. Reason is of
// google.rpc.ErrorInfo, and "" if the limit has not refused the call.
func Refused(code uint32, reason, message string, header http.Header, wait time.Duration) Answer {
	a := Answer{Header: header, Wait: wait}
	for status, c := range codes {
		if c == code {
			a.Status = status
		}
	}
	if reason != "" {
		body, _ := json.Marshal(apierror.Error{Code: apierror.Code(strings.ToLower(reason)), Message: message})
		a.Body = string(body)
	}
	return a
}
