package gatehouseecho_test

import (
	"errors"
	"testing"

	"github.com/labstack/echo/v5"
	echomiddleware "github.com/labstack/echo/v5/middleware"

	"github.com/animalstore/gatehouse/adapters/gatehouseecho"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/limit"
)

// The package comment says what echo.WrapMiddleware loses. If this test fails, that has
// changed.
func TestWrapMiddlewareOfEcho(t *testing.T) {
	for name, test := range map[string]struct {
		wrap       func(middleware.Middleware) echo.MiddlewareFunc
		remaining  string // after a returned error that is refunded, seen by the next request
		log        logLine
		afterPanic int // the status that a logger of Echo sees after a recovered panic
	}{
		"echo.WrapMiddleware": {func(m middleware.Middleware) echo.MiddlewareFunc { return echo.WrapMiddleware(m) }, "1", logLine{"/", 200, 0, false}, 200},
		"Wrap":                {func(m middleware.Middleware) echo.MiddlewareFunc { return gatehouseecho.Wrap(m) }, "2", logLine{"/", 500, 36, false}, 500},
		"Wrap of nil and one": {func(m middleware.Middleware) echo.MiddlewareFunc { return gatehouseecho.Wrap(nil, m) }, "2", logLine{"/", 500, 36, false}, 500},
	} {
		t.Run(name, func(t *testing.T) {
			e := echo.New()
			e.Use(test.wrap(limiter(t, limit.Options{ChargeIf: limit.NotServerError})))
			e.GET("/", func(*echo.Context) error { return errors.New("sorry") })
			send := serve(t, e)
			send("GET", "/", "")
			if got := send("GET", "/", "").remaining(); got != test.remaining {
				t.Errorf("%s requests are left after an error and the next request, want %s", got, test.remaining)
			}

			var log logbook
			e = echo.New()
			e.Use(test.wrap(middleware.AccessLog(log.logger())))
			e.GET("/", func(*echo.Context) error { return errors.New("sorry") })
			serve(t, e)("GET", "/", "")
			if got := log.line(t); got != test.log {
				t.Errorf("the log says %+v, want %+v", got, test.log)
			}

			seen := -1
			e = echo.New()
			e.Use(echomiddleware.RequestLoggerWithConfig(echomiddleware.RequestLoggerConfig{
				LogStatus: true,
				LogValuesFunc: func(_ *echo.Context, v echomiddleware.RequestLoggerValues) error {
					seen = v.Status
					return nil
				},
			}))
			e.Use(test.wrap(middleware.Recover(errs)))
			e.GET("/", func(*echo.Context) error { panic("no") })
			if got := serve(t, e)("GET", "/", ""); got.status != 500 || got.code() != "internal" {
				t.Errorf("a panic is answered with %d %q", got.status, got.body)
			}
			if seen != test.afterPanic {
				t.Errorf("a logger of Echo sees %d after a panic, want %d", seen, test.afterPanic)
			}
		})
	}
}
