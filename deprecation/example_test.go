package deprecation_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/deprecation"
)

// One operation, with nothing around it.
func Example() {
	getPet := deprecation.MustNew(deprecation.Options{
		Since:     time.Date(2025, time.December, 5, 0, 0, 0, 0, time.UTC),
		Sunset:    time.Date(2030, time.December, 5, 0, 0, 0, 0, time.UTC),
		Successor: "/v1/pets?status=available",
		OnUse:     func(r *http.Request) { fmt.Println("deprecated call from", r.Header.Get("User-Agent")) },
		Now:       func() time.Time { return time.Date(2030, time.December, 4, 23, 59, 59, 0, time.UTC) },
	})
	mux := http.NewServeMux()
	mux.Handle("GET /v1/pets/{petId}", getPet.Enforce(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "Rex")
	})))

	r := httptest.NewRequest(http.MethodGet, "/v1/pets/7", nil)
	r.Header.Set("User-Agent", "vet/1.0")
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	fmt.Println(w.Code)
	for _, name := range []string{"Deprecation", "Sunset", "Link"} {
		fmt.Printf("%s: %s\n", name, w.Header().Get(name))
	}
	// Output:
	// deprecated call from vet/1.0
	// 200
	// Deprecation: @1764892800
	// Sunset: Thu, 05 Dec 2030 00:00:00 GMT
	// Link: </v1/pets?status=available>; rel="successor-version"
}

// Authentication and a limiter stand in front of the operation and answer for it.
// Headers stands outside of them, so that a 401 has the headers too, and Enforce
// inside, so that 401 comes before 410. Both select their requests by the path.
func ExampleOnPath() {
	var errs apierror.Responder
	getPet := deprecation.MustNew(deprecation.Options{
		Since:     time.Date(2025, time.December, 5, 0, 0, 0, 0, time.UTC),
		Sunset:    time.Date(2030, time.December, 5, 0, 0, 0, 0, time.UTC),
		Successor: "/v1/pets?status=available",
		Errors:    &errs,
		Now:       func() time.Time { return time.Date(2030, time.December, 5, 0, 0, 0, 0, time.UTC) },
	})
	requireKey := func(next http.Handler) http.Handler {
		return errs.Handle(func(w http.ResponseWriter, r *http.Request) error {
			if r.Header.Get("Authorization") == "" {
				w.Header().Set("WWW-Authenticate", `Bearer realm="pets"`)
				return apierror.New(http.StatusUnauthorized, "missing_api_key", "An API key is required.")
			}
			next.ServeHTTP(w, r)
			return nil
		})
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/pets/{petId}", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "Rex") })

	api := errs.Mux(mux)
	api = deprecation.OnPath("/v1/pets/{petId}", getPet.Enforce)(api)
	api = requireKey(api) // and the limiter
	api = deprecation.OnPath("/v1/pets/{petId}", getPet.Headers)(api)

	for _, key := range []string{"", "Bearer pet_live_..."} {
		r := httptest.NewRequest(http.MethodGet, "/v1/pets/7", nil)
		r.Header.Set("Authorization", key)
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("Deprecation"), w.Header().Get("Link"))
		fmt.Print(w.Body)
	}
	// Output:
	// 401 @1764892800 </v1/pets?status=available>; rel="successor-version"
	// {"code":"missing_api_key","message":"An API key is required.","status":401}
	// 410 @1764892800 </v1/pets?status=available>; rel="successor-version"
	// {"code":"operation_removed","message":"This operation was removed on 5 December 2030. Use /v1/pets?status=available instead.","status":410}
}

// A client looks at every response.
func ExampleFromResponse() {
	server := httptest.NewServer(deprecation.MustNew(deprecation.Options{
		Since:     time.Date(2025, time.December, 5, 0, 0, 0, 0, time.UTC),
		Successor: "/v1/pets?status=available",
	}).Enforce(http.NotFoundHandler()))
	defer server.Close()

	resp, err := server.Client().Get(server.URL + "/v1/pets/7")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	notice, deprecated, err := deprecation.FromResponse(resp)
	if err != nil {
		fmt.Println("malformed notice:", err)
	}
	if deprecated {
		fmt.Println("deprecated since", notice.Since.Format(time.DateOnly))
		fmt.Println("use instead:", notice.Successor[len(server.URL):])
	}
	// Output:
	// deprecated since 2025-12-05
	// use instead: /v1/pets?status=available
}
