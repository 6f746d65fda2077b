package gatehousechi_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/go-chi/chi/v5"

	"github.com/animalstore/gatehouse/adapters/gatehousechi"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

func ExampleSetErrors() {
	r := chi.NewRouter()
	r.Use(limit.ByIP(ratelimit.PerMinute(60)))
	gatehousechi.SetErrors(r, nil)
	r.Route("/pets", func(r chi.Router) {
		r.Get("/{id}", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, chi.URLParam(r, "id")) })
		r.Delete("/{id}", func(http.ResponseWriter, *http.Request) {})
	})
	for _, path := range []string{"/pets/17", "/plants"} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest("PUT", path, nil))
		fmt.Printf("%d %q %s", w.Code, w.Header().Get("Allow"), w.Body)
	}
	// Output:
	// 405 "DELETE, GET" {"code":"method_not_allowed","message":"This method is not supported here. The Allow header lists the methods that are.","status":405}
	// 404 "" {"code":"not_found","message":"There is nothing at this path.","status":404}
}
