// Chi is a service on chi with the full stack: request IDs, an access log, recovery,
// security headers, API keys, plans, bans, refunds, and one envelope for all errors.
//
//	go run ./examples/chi
//	curl -i -H 'Authorization: Bearer token-of-ann' http://127.0.0.1:8081/pets/17
//
// Also try /broken, whose 500 is given back, PUT /pets/17, and five requests in a minute.
package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"

	"github.com/go-chi/chi/v5"

	"github.com/animalstore/gatehouse/adapters/gatehousechi"
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

	r := chi.NewRouter()
	r.Use(
		middleware.RequestID, middleware.AccessLog(logger), errs.Recover, gatehousechi.Route,
		middleware.SecurityHeaders, auth.Identify, limited, auth.Require,
	)
	gatehousechi.SetErrors(r, errs)
	r.Method("GET", "/pets/{id}", errs.Handle(func(w http.ResponseWriter, r *http.Request) error {
		user, _ := bearer.FromContext[string](r.Context())
		if r.PathValue("id") != "17" {
			return errNoPet
		}
		_, err := fmt.Fprintf(w, "Rex, a pet of %s\n", user)
		return err
	}))
	r.Get("/broken", func(http.ResponseWriter, *http.Request) { panic("broken") }) // 500, not charged
	return r, nil
}
