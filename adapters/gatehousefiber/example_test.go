package gatehousefiber_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/gofiber/fiber/v3"

	"github.com/animalstore/gatehouse/adapters/gatehousefiber"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

func Example() {
	limiter, err := memory.New(memory.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	source := clientip.FromRemoteAddr() // behind proxies: clientip.FromXForwardedFor
	free := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerHour(2))
	limited, err := gatehousefiber.New(limiter, func(r *http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: clientip.NetworkSubject(source.Addr(r)), Plan: free}, nil
	}, limit.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	app := fiber.New()
	app.Use(limited)
	app.Get("/pets/:id", func(c fiber.Ctx) error { return c.SendString("pet " + c.Params("id")) })

	for range 3 {
		res, err := app.Test(httptest.NewRequest("GET", "/pets/17", nil))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d, %s left\n", res.StatusCode, res.Header.Get("X-RateLimit-Remaining"))
	}
	// Output:
	// 200, 1 left
	// 200, 0 left
	// 429, 0 left
}
