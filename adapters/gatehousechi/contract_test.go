package gatehousechi_test

import (
	"net/http"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/animalstore/gatehouse/adapters/gatehousechi"
	"github.com/animalstore/gatehouse/adapters/internal/contract"
	"github.com/animalstore/gatehouse/middleware"
)

func TestLimits(t *testing.T) {
	contract.TestLimits(t, contract.HTTP(func(h http.Handler, m ...middleware.Middleware) http.Handler {
		r := chi.NewRouter()
		gatehousechi.SetErrors(r, contract.Errors)
		r.Use(append(m, gatehousechi.Route)...)
		r.Handle("/{text}", h)
		return r
	}))
}
