package gatehousegin_test

import (
	"fmt"
	"net/http/httptest"

	"github.com/gin-gonic/gin"

	"github.com/animalstore/gatehouse/adapters/gatehousegin"
	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

func Example() {
	router := gin.New()
	gatehousegin.SetErrors(router, nil)
	router.Use(gatehousegin.Wrap(new(apierror.Responder).Recover, middleware.SecurityHeaders, limit.ByIP(ratelimit.PerHour(2))))
	router.GET("/pets/:id", func(c *gin.Context) { c.String(200, "pet %s\n", c.Param("id")) })

	for range 3 {
		w := httptest.NewRecorder()
		router.ServeHTTP(w, httptest.NewRequest("GET", "/pets/17", nil))
		fmt.Printf("%d, %s left\n", w.Code, w.Header().Get("X-RateLimit-Remaining"))
	}
	// Output:
	// 200, 1 left
	// 200, 0 left
	// 429, 0 left
}
