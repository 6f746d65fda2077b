package contract

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

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
	limiter, err := memory.New(memory.Options{Now: func() time.Time { return time.Unix(0, c.now.Load()) }})
	if err != nil {
		t.Fatal(err)
	}
	return limiter
}

// Used returns how many units of its first quota a subject has used.
func Used(t *testing.T, p engine.Peeker, subject string, plan *ratelimit.Plan) int64 {
	t.Helper()
	d, err := p.Peek(t.Context(), subject, plan)
	if err != nil {
		t.Fatal(err)
	}
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
