package gatehouseecho_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v5"
	echomiddleware "github.com/labstack/echo/v5/middleware"

	"github.com/animalstore/gatehouse/adapters/gatehouseecho"
	"github.com/animalstore/gatehouse/adapters/internal/contract"
	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware"
)

// newRouter returns a router that runs the middlewares, and for nil the recovery of Echo.
func newRouter(use ...contract.Wrap) *echo.Echo {
	e := echo.New()
	e.HTTPErrorHandler = gatehouseecho.ErrorHandler(contract.Errors)
	for _, m := range use {
		if m == nil {
			e.Use(echomiddleware.Recover())
		} else {
			e.Use(gatehouseecho.Wrap(m...))
		}
	}
	return e
}

func TestContract(t *testing.T) {
	contract.Test(t, contract.Adapter{
		Name: "gatehouseecho",
		New: func(use []contract.Wrap, routes map[string]http.HandlerFunc) http.Handler {
			e := newRouter(use...)
			for pattern, h := range routes {
				method, path, _ := strings.Cut(pattern, " ")
				e.Add(method, path, func(c *echo.Context) error { h(c.Response(), c.Request()); return nil })
			}
			e.GET("/error", func(*echo.Context) error { return errors.New("private") })
			e.GET("/http", func(*echo.Context) error { return echo.NewHTTPError(502, "sorry") })
			e.GET("/envelope", func(*echo.Context) error { return fmt.Errorf("wrapped: %w", apierror.New(500, "sorry", "Sorry.")) })
			e.GET("/missing", func(*echo.Context) error { return echo.ErrNotFound })
			return e
		},
		Own: []contract.Own{
			{Method: "GET", Path: "/error", Line: contract.Line{Route: "/error", Status: 500, Bytes: 88}},
			{Method: "GET", Path: "/http", Line: contract.Line{Route: "/http", Status: 502, Bytes: 54}},
			{Method: "GET", Path: "/envelope", Line: contract.Line{Route: "/envelope", Status: 500, Bytes: 49}},
			{Method: "GET", Path: "/missing", Line: contract.Line{Route: "/missing", Status: 404, Bytes: 77}},
			{Method: "PUT", Path: "/ok", Line: contract.Line{Route: "/ok", Status: 405, Bytes: 135}},
		},
	})
}

func ok(c *echo.Context) error { return c.String(200, "ok") }

// Context finds what handlers of Echo have set.
func TestContext(t *testing.T) {
	user := ""
	router := echo.New()
	router.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error { c.Set("user", "ann"); return next(c) }
	}, gatehouseecho.Wrap(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			user = gatehouseecho.Context(r).Get("user").(string)
			next.ServeHTTP(w, r)
		})
	}))
	router.GET("/", func(*echo.Context) error { return nil })
	contract.Serve(t, router)("GET", "/", "")
	if user != "ann" {
		t.Errorf("the user is %q, want ann", user)
	}
	if c := gatehouseecho.Context(httptest.NewRequest("GET", "/", nil)); c != nil {
		t.Errorf("outside of Wrap there is a context: %v", c)
	}
}

// The recovery of Echo passes http.ErrAbortHandler on.
func TestAbort(t *testing.T) {
	e := newRouter(nil, contract.Wrap{contract.Errors.Recover})
	e.GET("/late", func(c *echo.Context) error {
		c.String(200, "half")
		_ = http.NewResponseController(c.Response()).Flush()
		panic("no")
	})
	if got := contract.Serve(t, e)("GET", "/late", ""); got.Err == nil || got.Body != "half" {
		t.Errorf("a response that was broken off looks complete: %q", got.Body)
	}
}

// Echo.Pre runs before the router: the route is known afterwards.
func TestPre(t *testing.T) {
	var log contract.Log
	e := newRouter()
	e.GET("/ok", ok)
	e.Pre(gatehouseecho.Wrap(middleware.AccessLog(log.Logger())))
	pattern := ""
	contract.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.ServeHTTP(w, r)
		pattern = r.Pattern
	}))("GET", "/ok", "")
	if line := log.Line(t); pattern != "/ok" || line != (contract.Line{Route: "/ok", Status: 200, Bytes: 2}) {
		t.Errorf("the log says %+v, and the pattern outside is %q", line, pattern)
	}
}

// A handler of Echo around Wrap gets the error, which was answered once, and finds the
// Response that it had.
func TestErrorsTravelOn(t *testing.T) {
	sorry := errors.New("sorry")
	e := newRouter()
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			before := c.Response()
			err := next(c)
			if err != sorry || c.Response() != before {
				t.Errorf("got %v, and another Response: %t", err, c.Response() != before)
			}
			return err
		}
	}, gatehouseecho.Wrap(contract.Errors.Recover))
	e.GET("/", func(*echo.Context) error { return sorry })
	e.GET("/begun", func(c *echo.Context) error {
		c.String(200, "half")
		return sorry
	})
	send := contract.Serve(t, e)
	if got := send("GET", "/", ""); got.Code() != "internal" {
		t.Errorf("the answer is %q", got.Body)
	}
	if got := send("GET", "/begun", ""); got.Status != 200 || got.Body != "half" {
		t.Errorf("a response that has begun becomes %d %q", got.Status, got.Body)
	}
}
