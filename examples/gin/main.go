// Gin is a service on Gin with the full stack: request IDs, an access log, recovery,
// security headers, API keys, plans, bans, refunds, and one envelope for all errors.
//
//	go run ./examples/gin
//	curl -i -H 'Authorization: Bearer token-of-ann' http://127.0.0.1:8081/pets/17
//
// Also try /broken, whose 500 is given back, PUT /pets/17, and five requests in a minute.
package main

import (
	"log/slog"
	"net/http"
	"os"

	"github.com/gin-gonic/gin"

	"github.com/animalstore/gatehouse/adapters/gatehousegin"
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

	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.Use(gatehousegin.Wrap(
		middleware.RequestID, middleware.AccessLog(logger), errs.Recover, middleware.SecurityHeaders,
		auth.Identify, limited, auth.Require,
	), gatehousegin.ErrorHandler(errs))
	gatehousegin.SetErrors(r, errs)
	r.GET("/pets/:id", func(c *gin.Context) {
		user, _ := bearer.FromContext[string](c.Request.Context())
		if c.Param("id") != "17" {
			_ = c.Error(errNoPet) // answered by ErrorHandler
			return
		}
		c.String(http.StatusOK, "Rex, a pet of %s\n", user)
	})
	r.GET("/broken", func(*gin.Context) { panic("broken") }) // 500, not charged
	return r, nil
}
