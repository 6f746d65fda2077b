package gatehouseecho_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v5"
	echomiddleware "github.com/labstack/echo/v5/middleware"

	"github.com/animalstore/gatehouse/adapters/gatehouseecho"
	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
)

var recovery = echomiddleware.Recover()

// ends are the ways in which a handler ends.
var ends = map[string]echo.HandlerFunc{
	"ok":       func(c *echo.Context) error { return c.String(200, "ok") },
	"nothing":  func(*echo.Context) error { return nil },
	"status":   func(c *echo.Context) error { return c.NoContent(503) },
	"error":    func(*echo.Context) error { return errors.New("private") },
	"http":     func(*echo.Context) error { return echo.NewHTTPError(502, "sorry") },
	"envelope": func(*echo.Context) error { return fmt.Errorf("wrapped: %w", apierror.New(500, "sorry", "Sorry.")) },
	"notfound": func(*echo.Context) error { return echo.ErrNotFound },
	"panic":    func(*echo.Context) error { panic("no") },
	"late": func(c *echo.Context) error {
		c.String(200, "half")
		_ = http.NewResponseController(c.Response()).Flush()
		panic("no")
	},
}

// withEnds has a route for each of them.
func withEnds(use ...echo.MiddlewareFunc) *echo.Echo {
	e := echo.New()
	e.HTTPErrorHandler = gatehouseecho.ErrorHandler(errs)
	e.Use(use...)
	for name, h := range ends {
		e.GET("/"+name, h)
	}
	return e
}

// A request is charged, limited and banned, and given back if it fails in any of the ways
// that Echo has, with the recovery of either side.
func TestRateLimit(t *testing.T) {
	refund := limit.Options{ChargeIf: limit.NotServerError}
	for name, router := range map[string]*echo.Echo{
		"Recover around the limit": withEnds(gatehouseecho.Wrap(middleware.Recover(errs), limiter(t, refund))),
		"Recover inside the limit": withEnds(gatehouseecho.Wrap(limiter(t, refund), middleware.Recover(errs))),
		"Recover in another Wrap":  withEnds(gatehouseecho.Wrap(limiter(t, refund)), gatehouseecho.Wrap(middleware.Recover(errs))),
		"Recover of Echo outside":  withEnds(recovery, gatehouseecho.Wrap(limiter(t, refund))),
		"Recover of Echo inside":   withEnds(gatehouseecho.Wrap(limiter(t, refund)), recovery),
	} {
		t.Run(name, func(t *testing.T) {
			send := serve(t, router)
			for _, test := range []struct {
				path      string
				status    int
				remaining string
			}{
				{"/ok", 200, "2"},
				{"/status", 503, "1"}, // given back, like the others
				{"/error", 500, "1"},
				{"/http", 502, "1"},
				{"/envelope", 500, "1"},
				{"/panic", 500, "1"},
				{"/notfound", 404, "1"},
				{"/nothing", 200, "0"},
				{"/ok", 429, "0"},
				{"/ok", 429, "0"},
			} {
				got := send("GET", test.path, "")
				if got.status != test.status || got.remaining() != test.remaining {
					t.Errorf("%s: %d with %s left, want %d with %s", test.path, got.status, got.remaining(), test.status, test.remaining)
				}
			}
			if got := send("GET", "/ok", ""); got.code() != "client_banned" || got.header.Get("Retry-After") != "60" {
				t.Errorf("got %s and Retry-After %q, want a ban of 60 seconds", got.body, got.header.Get("Retry-After"))
			}
		})
	}
}

// ChargeIf sees the status of an error, and a handler of Echo settles.
func TestChargeIfAndSettle(t *testing.T) {
	router := withEnds(gatehouseecho.Wrap(limiter(t, limit.Options{
		Context:  true,
		ChargeIf: func(_ *http.Request, status int) bool { return status != 404 },
	})))
	router.GET("/settle", func(c *echo.Context) error {
		ctx := c.Request().Context()
		return limit.FromContext(ctx).Settle(ctx, 2)
	})
	send := serve(t, router)
	for _, want := range []struct{ path, remaining string }{
		{"/notfound", "2"}, {"/notfound", "2"}, {"/settle", "2"}, {"/ok", "0"},
	} {
		if got := send("GET", want.path, "").remaining(); got != want.remaining {
			t.Errorf("%s: %s left, want %s", want.path, got, want.remaining)
		}
	}
}

// The access log has route, status and bytes, whatever answered.
func TestAccessLog(t *testing.T) {
	var log logbook
	router := withEnds(gatehouseecho.Wrap(middleware.RequestID, middleware.AccessLog(log.logger()), middleware.Recover(errs)))
	router.GET("/pets/:id", func(c *echo.Context) error { return c.String(201, "rex") })
	send := serve(t, router)
	for _, test := range []struct {
		method, path string
		want         logLine
	}{
		{"GET", "/pets/17", logLine{"/pets/:id", 201, 3, false}},
		{"GET", "/nothing", logLine{"/nothing", 200, 0, false}},
		{"GET", "/status", logLine{"/status", 503, 0, false}},
		{"GET", "/error", logLine{"/error", 500, 88, false}},
		{"GET", "/http", logLine{"/http", 502, 54, false}},
		{"GET", "/panic", logLine{"/panic", 500, 88, false}},
		{"GET", "/late", logLine{"/late", 200, 4, true}},
		{"GET", "/nowhere", logLine{"", 404, 77, false}},
		{"PUT", "/ok", logLine{"/ok", 405, 135, false}},
	} {
		got := send(test.method, test.path, "")
		if line := log.line(t); line != test.want {
			t.Errorf("%s: the log says %+v, want %+v", test.path, line, test.want)
		}
		if got.err == nil && len(got.body) != test.want.Bytes {
			t.Errorf("%s: the client gets %d bytes, the log says %d: %s", test.path, len(got.body), test.want.Bytes, got.body)
		}
		if (got.err != nil) != test.want.Aborted {
			t.Errorf("%s: the client gets the error %v", test.path, got.err)
		}
	}
}

// Each middleware of the repository works, and what it puts into the context arrives.
func TestEachMiddleware(t *testing.T) {
	auth, err := bearer.New("pets", func(_ context.Context, token string) (string, error) {
		if token != "ann" {
			return "", bearer.ErrInvalid
		}
		return token, nil
	}, bearer.Options{Errors: errs})
	if err != nil {
		t.Fatal(err)
	}
	old := deprecation.MustNew(deprecation.Options{Since: noon, Successor: "/v2", Errors: errs})
	removed := deprecation.MustNew(deprecation.Options{Since: noon.AddDate(-2, 0, 0), Sunset: noon.AddDate(-1, 0, 0), Successor: "/v2", Errors: errs})
	source := clientip.FromRemoteAddr()

	router := withEnds(gatehouseecho.Wrap(middleware.RequestID, middleware.SecurityHeaders, auth.Identify, limiter(t, limit.Options{}), auth.Require,
		middleware.BodyLimit(4, errs)))
	router.POST("/pets/:id", func(c *echo.Context) error {
		user, _ := bearer.FromContext[string](c.Request().Context())
		body, err := io.ReadAll(c.Request().Body)
		if err != nil {
			return err
		}
		return c.String(200, fmt.Sprintf("%s %s %s %s %t %t", user, body, c.Param("id"), c.Request().PathValue("id"),
			middleware.RequestIDFrom(c.Request().Context()) == c.Response().Header().Get("X-Request-Id"), source.Addr(c.Request()).IsLoopback()))
	}, gatehouseecho.Wrap(old.Enforce))
	router.GET("/removed", func(*echo.Context) error { t.Error("called after the sunset"); return nil }, gatehouseecho.Wrap(removed.Enforce))
	send := serve(t, router)
	got := send("POST", "/pets/17", "body")
	if got.status != 200 || got.body != "ann body 17 17 true true" || got.remaining() != "2" {
		t.Errorf("got %d %q with %s left", got.status, got.body, got.remaining())
	}
	for _, field := range []string{"X-Request-Id", "X-Content-Type-Options", "Deprecation", "Link"} {
		if len(got.header[field]) != 1 {
			t.Errorf("the response has %d lines of %s, want 1", len(got.header[field]), field)
		}
	}
	if got := send("GET", "/removed", ""); got.status != 410 || got.code() != "operation_removed" || got.remaining() != "1" {
		t.Errorf("after the sunset: %d %s with %s left", got.status, got.code(), got.remaining())
	}
	if got := send("POST", "/pets/17", "bodies"); got.status != 413 || got.code() != "body_too_large" {
		t.Errorf("a long body: %d %s", got.status, got.body)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "/pets/17", nil)
	r.Header.Set("Authorization", "Bearer bob")
	router.ServeHTTP(w, r)
	if w.Code != 429 { // the limit is around Require
		t.Errorf("an unknown key: %d, want 429", w.Code)
	}
}
