package gatehousegin_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

func init() { gin.SetMode(gin.ReleaseMode) }

// errs drops what it logs.
var errs = &apierror.Responder{Logger: slog.New(slog.DiscardHandler), RequestID: middleware.RequestIDFrom}

// noon is when the engines of the tests stand still.
var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// limiter returns a middleware that allows ann 3 requests a minute. The fourth bans her
// if her penalty says so.
func limiter(t *testing.T, o limit.Options) middleware.Middleware {
	t.Helper()
	engine, err := memory.New(memory.Options{Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	ban := ratelimit.Penalty{Strikes: 1, Ban: time.Minute, Growth: 1, Max: time.Minute, Forgive: time.Hour}
	plan := ratelimit.MustPlan("small", ban, ratelimit.PerMinute(3))
	o.Errors = errs
	limited, err := limit.New(engine, func(*http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: "user:ann", Plan: plan}, nil
	}, o)
	if err != nil {
		t.Fatal(err)
	}
	return limited
}

// A logbook holds the lines of an access log.
type logbook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logbook) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(l, nil)) }

// line returns what the only line says of route, status and bytes, and whether it has
// aborted=true.
func (l *logbook) line(t *testing.T) (got logLine) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := json.Unmarshal(l.buf.Bytes(), &got); err != nil {
		t.Fatalf("the log is not one line: %v\n%s", err, l.buf.String())
	}
	l.buf.Reset()
	return got
}

type logLine struct {
	Route   string
	Status  int
	Bytes   int
	Aborted bool
}

type answer struct {
	status int
	header http.Header
	body   string
	err    error // of reading the body
}

func (a answer) code() string {
	var envelope struct{ Code string }
	_ = json.Unmarshal([]byte(a.body), &envelope)
	return envelope.Code
}

func (a answer) remaining() string { return a.header.Get("X-RateLimit-Remaining") }

// serve serves the handler over HTTP/1.1 and returns a function that sends requests.
func serve(t *testing.T, h http.Handler) func(method, path, body string) answer {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.Start()
	t.Cleanup(server.Close)
	return func(method, path, body string) answer {
		t.Helper()
		r, err := http.NewRequest(method, server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer ann")
		res, err := server.Client().Do(r)
		if err != nil {
			return answer{err: err}
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		return answer{res.StatusCode, res.Header, string(text), err}
	}
}
