package gatehouseecho_test

import (
	"fmt"
	"net/http/httptest"

	"github.com/labstack/echo/v5"

	"github.com/animalstore/gatehouse/adapters/gatehouseecho"
	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

func Example() {
	e := echo.New()
	e.HTTPErrorHandler = gatehouseecho.ErrorHandler(nil)
	e.Use(gatehouseecho.Wrap(new(apierror.Responder).Recover, middleware.SecurityHeaders, limit.ByIP(ratelimit.PerHour(2))))
	e.GET("/pets/:id", func(c *echo.Context) error { return c.String(200, "pet "+c.Param("id")) })

	for range 3 {
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequest("GET", "/pets/17", nil))
		fmt.Printf("%d, %s left\n", w.Code, w.Header().Get("X-RateLimit-Remaining"))
	}
	// Output:
	// 200, 1 left
	// 200, 0 left
	// 429, 0 left
}
