package gatehousefiber_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/adaptor"
	fiberrecover "github.com/gofiber/fiber/v3/middleware/recover"

	"github.com/animalstore/gatehouse/adapters/gatehousefiber"
	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

var (
	errs = &apierror.Responder{Logger: slog.New(slog.DiscardHandler)}
	noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	ban  = ratelimit.Penalty{Strikes: 1, Ban: time.Minute, Growth: 1, Max: time.Minute, Forgive: time.Hour}
	plan = ratelimit.MustPlan("small", ban, ratelimit.PerMinute(3))
)

func engine() *memory.Limiter {
	return must(memory.New(memory.Options{Now: func() time.Time { return noon }}))
}

func ann(r *http.Request) (ratelimit.Caller, error) {
	return ratelimit.Caller{Subject: "user:" + r.Header.Get("User"), Plan: plan}, nil
}

// app has a route for each way in which a handler ends.
func app(l ratelimit.Limiter, o limit.Options) *fiber.App {
	o.Errors = errs
	limited := must(gatehousefiber.New(l, ann, o))
	a := fiber.New()
	a.Use(fiberrecover.New(), limited)
	a.Get("/ok", func(c fiber.Ctx) error { c.Vary("Origin"); return c.SendString("ok") })
	a.Get("/status", func(c fiber.Ctx) error { return c.SendStatus(503) })
	a.Get("/error", func(fiber.Ctx) error { return errors.New("sorry") })
	a.Get("/fiber", func(fiber.Ctx) error { return fiber.NewError(502, "sorry") })
	a.Get("/notfound", func(fiber.Ctx) error { return fiber.ErrNotFound })
	a.Get("/panic", func(fiber.Ctx) error { panic("no") })
	return a
}

func send(a *fiber.App, method, path string) (*http.Response, string) {
	r := httptest.NewRequest(method, path, nil)
	r.Header.Set("User", "ann")
	r.Header.Set("Accept", "application/json")
	res := must(a.Test(r, fiber.TestConfig{Timeout: 0}))
	body := must(io.ReadAll(res.Body))
	return res, string(body)
}

func TestLimit(t *testing.T) {
	a := app(engine(), limit.Options{ChargeIf: limit.NotServerError, Headers: limit.XRateLimit | limit.DraftRateLimit})
	for _, test := range []struct {
		path      string
		status    int
		remaining string
		body      string
	}{
		{"/ok", 200, "2", "ok"},
		{"/status", 503, "1", "Service Unavailable"}, // given back, like the others
		{"/error", 500, "1", "sorry"},
		{"/fiber", 502, "1", "sorry"},
		{"/panic", 500, "1", "no"},
		{"/notfound", 404, "1", "Not Found"},
		{"/nowhere", 404, "0", "Not Found"},
		{"/ok", 429, "0", `"code":"rate_limit_exceeded"`},
		{"/ok", 429, "0", `"code":"client_banned"`},
	} {
		res, body := send(a, "GET", test.path)
		if got := res.Header.Get("X-RateLimit-Remaining"); res.StatusCode != test.status || got != test.remaining || !strings.Contains(body, test.body) {
			t.Errorf("%s: %d with %s left: %s, want %d with %s: %s", test.path, res.StatusCode, got, body, test.status, test.remaining, test.body)
		}
		if res.StatusCode == 429 && (res.Header.Get("Retry-After") != "60" || res.Header.Get("Content-Type") != "application/json" || res.Header.Get("Vary") != "Accept") {
			t.Errorf("the refusal has the fields %v", res.Header)
		}
		if res.Header.Get("RateLimit") == "" {
			t.Errorf("%s: there is no RateLimit", test.path)
		}
	}
	if res, body := send(a, "HEAD", "/ok"); res.StatusCode != 429 || body != "" {
		t.Errorf("HEAD: %d %q", res.StatusCode, body)
	}
}

// The client chooses the form of the refusal, and a handler may change the fields.
func TestFields(t *testing.T) {
	a := app(engine(), limit.Options{})
	a.Get("/own", func(c fiber.Ctx) error { c.Set("X-RateLimit-Limit", "own"); return c.SendString("ok") })
	for range 3 {
		if res, _ := send(a, "GET", "/own"); res.Header.Get("X-RateLimit-Limit") != "own" {
			t.Errorf("a field that a handler has set is %q", res.Header.Get("X-RateLimit-Limit"))
		}
	}
	r := httptest.NewRequest("GET", "/ok", nil)
	r.Header.Set("User", "ann")
	r.Header["Accept"] = []string{"application/json;q=0.5", "application/problem+json"}
	res := must(a.Test(r, fiber.TestConfig{Timeout: 0}))
	if got := res.Header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("the refusal has the type %q", got)
	}
}

// stuck is an engine that fails and keeps the subjects that it was asked for.
type stuck struct{ subjects []string }

func (s *stuck) TakeAll(ctx context.Context, charges []ratelimit.Charge, _ []ratelimit.Decision) error {
	var err error
	for _, charge := range charges {
		_, err = s.Take(ctx, charge.Subject, charge.Plan, 1)
	}
	return err
}

func (s *stuck) Take(_ context.Context, subject string, _ *ratelimit.Plan, _ int64) (ratelimit.Decision, error) {
	s.subjects = append(s.subjects, subject)
	return ratelimit.Decision{}, fmt.Errorf("%w: stuck", ratelimit.ErrUnavailable)
}

// A failure of the engine is observed, and answered as Options say.
func TestEngineUnavailable(t *testing.T) {
	var l stuck
	observed := 0
	a := app(&l, limit.Options{
		Cost: func(r *http.Request) int64 { return int64(len(r.URL.Path)) / 3 },
		Observe: func(r *http.Request, caller ratelimit.Caller, _ ratelimit.Decision, err error) {
			if observed++; gatehousefiber.Ctx(r).Path() != "/ok" || caller.Plan != plan || !errors.Is(err, ratelimit.ErrUnavailable) {
				t.Errorf("Observe got %s, %v, %v", r.URL, caller, err)
			}
		},
	})
	res, body := send(a, "GET", "/ok")
	if res.StatusCode != 503 || res.Header.Get("Retry-After") == "" || !strings.Contains(body, "unavailable") || observed != 1 {
		t.Errorf("got %d %s, observed %d times", res.StatusCode, body, observed)
	}
	open := app(new(stuck), limit.Options{FailOpen: true})
	if res, _ := send(open, "GET", "/ok"); res.StatusCode != 200 {
		t.Errorf("FailOpen: %d", res.StatusCode)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, l := range []ratelimit.Limiter{nil, (*memory.Limiter)(nil)} {
		if _, err := gatehousefiber.New(l, ann, limit.Options{}); err == nil {
			t.Errorf("a nil %T is accepted", l)
		}
	}
	if _, err := gatehousefiber.New(engine(), nil, limit.Options{}); err == nil {
		t.Error("no identify is accepted")
	}
	if _, err := gatehousefiber.New(&stuck{}, ann, limit.Options{ChargeIf: limit.NotServerError}); err == nil {
		t.Error("Refund is accepted without an Adjuster")
	}
}

// The package comment says that a middleware of net/http sees nothing in Fiber. If this
// test fails, that has changed.
func TestAdaptorSeesNothing(t *testing.T) {
	var status int
	a := fiber.New()
	a.Use(fiberrecover.New(), adaptor.HTTPMiddleware(func(next http.Handler) http.Handler {
		return middleware.Recover(errs)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			tracked := middleware.TrackResponse(w)
			next.ServeHTTP(tracked, r)
			status = tracked.Status()
		}))
	}))
	a.Get("/", func(fiber.Ctx) error { panic("no") })
	res, body := send(a, "GET", "/")
	if status != 0 || res.StatusCode != 500 || strings.Contains(body, "internal") {
		t.Errorf("the middleware sees %d, and Recover answers %d %s", status, res.StatusCode, body)
	}
}

// Errors.Write may answer without a status, and keeps the fields of the limit.
func TestWriteKeepsTheFields(t *testing.T) {
	for want, write := range map[string]func(http.ResponseWriter, *http.Request, *apierror.Error){
		"200 {}": func(w http.ResponseWriter, _ *http.Request, _ *apierror.Error) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "{}")
		},
		`429 "rate_limit_exceeded"`: func(w http.ResponseWriter, _ *http.Request, e *apierror.Error) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `"`+string(e.Code)+`"`)
		},
	} {
		day := ratelimit.MustPlan("one", ratelimit.Penalty{}, ratelimit.Quota{Limit: 1, Window: 24 * time.Hour})
		limited := must(gatehousefiber.New(engine(), func(*http.Request) (ratelimit.Caller, error) {
			return ratelimit.Caller{Subject: "ann", Plan: day}, nil
		}, limit.Options{Errors: &apierror.Responder{Write: write}}))
		app := fiber.New()
		app.Use(limited)
		app.Get("/", func(c fiber.Ctx) error { return c.SendString("ok") })
		send(app, "GET", "/")
		resp, body := send(app, "GET", "/")
		if got := fmt.Sprint(resp.StatusCode, " ", body); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if resp.Header.Get("X-RateLimit-Limit") != "1" || resp.Header.Get("Retry-After") == "" || !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
			t.Errorf("%s: the response has the fields %v, want those of the limit", want, resp.Header)
		}
	}
}

// must returns v. It panics if what a test sets up fails.
func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}
