// Echo is a service on Echo with the full stack: request IDs, an access log, recovery,
// security headers, API keys, plans, bans, refunds, and one envelope for all errors.
//
//	go run ./examples/echo
//	curl -i -H 'Authorization: Bearer token-of-ann' http://127.0.0.1:8081/pets/17
//
// Also try /broken, whose 500 is given back, PUT /pets/17, and five requests in a minute.
package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"

	"github.com/labstack/echo/v5"

	"github.com/animalstore/gatehouse/adapters/gatehouseecho"
	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/examples/internal/demo"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/bearer"
)

var errNoPet = apierror.New(http.StatusNotFound, "pet_not_found", "There is no pet with this identifier.")

func main() { demo.Serve(newRouter(slog.New(slog.NewTextHandler(os.Stderr, nil)))) }

func newRouter(logger *slog.Logger) (http.Handler, error) {
	errs := &apierror.Responder{Logger: logger, RequestID: middleware.RequestIDFrom}
	auth, limited, err := demo.NewGate(errs)
	if err != nil {
		return nil, err
	}

	e := echo.New()
	e.HTTPErrorHandler = gatehouseecho.ErrorHandler(errs)
	e.Use(gatehouseecho.Wrap(
		middleware.RequestID, middleware.AccessLog(logger), errs.Recover, middleware.SecurityHeaders,
		auth.Identify, limited, auth.Require,
	))
	e.GET("/pets/:id", func(c *echo.Context) error {
		user, _ := bearer.FromContext[string](c.Request().Context())
		if c.Param("id") != "17" {
			return errNoPet
		}
		return c.String(http.StatusOK, fmt.Sprintf("Rex, a pet of %s\n", user))
	})
	e.GET("/broken", func(*echo.Context) error { return errors.New("broken") }) // 500, not charged
	return e, nil
}
