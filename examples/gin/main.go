// Gin is a service on Gin with the full stack: request IDs, an access log, recovery,
// security headers, API keys, plans, bans, refunds, and one envelope for all errors.
//
//	go run ./examples/gin
//	curl -i -H 'Authorization: Bearer token-of-ann' http://127.0.0.1:8081/pets/17
package main

import (
	"context"
	"log"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/animalstore/gatehouse/adapters/gatehousegin"
	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

var (
	free   = ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(3), ratelimit.PerDay(1000))
	guests = ratelimit.MustPlan("guests", ratelimit.DefaultPenalty(), ratelimit.PerMinute(2))

	users = map[string]string{"token-of-ann": "ann"} // by key; package apikey keeps digests instead

	errNoPet = apierror.New(http.StatusNotFound, "pet_not_found", "There is no pet with this identifier.")
)

func main() {
	h, err := newRouter(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "127.0.0.1:8081", Handler: h, ReadHeaderTimeout: 5 * time.Second}
	log.Printf("listening on http://%s/pets/17", server.Addr)
	log.Fatal(server.ListenAndServe())
}

func newRouter(logger *slog.Logger) (http.Handler, error) {
	errs := &apierror.Responder{Logger: logger, RequestID: middleware.RequestIDFrom}
	auth, err := bearer.New("pets", func(_ context.Context, token string) (string, error) {
		user, ok := users[token]
		if !ok {
			return "", bearer.ErrInvalid
		}
		return user, nil
	}, bearer.Options{Errors: errs})
	if err != nil {
		return nil, err
	}
	engine, err := memory.New(memory.Options{})
	if err != nil {
		return nil, err
	}
	source := clientip.FromRemoteAddr()
	limited, err := limit.New(engine, func(r *http.Request) (ratelimit.Caller, error) {
		if user, ok := bearer.FromContext[string](r.Context()); ok {
			return ratelimit.Caller{Subject: "user:" + user, Plan: free, Kind: ratelimit.KindAPIKey}, nil
		}
		return ratelimit.Caller{Subject: clientip.NetworkSubject(source.Addr(r)), Plan: guests, Kind: ratelimit.KindNetwork}, nil
	}, limit.Options{Refund: true, Errors: errs})
	if err != nil {
		return nil, err
	}

	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.Use(gatehousegin.Wrap(
		middleware.RequestID, middleware.AccessLog(logger), middleware.Recover(errs), middleware.SecurityHeaders,
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
