package apierror_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"

	"github.com/animalstore/gatehouse/apierror"
)

var (
	errNoPet     = apierror.New(http.StatusNotFound, "pet_not_found", "There is no pet with this identifier.")
	errNoRows    = errors.New("sql: no rows in result set")
	errNoNetwork = errors.New("dial tcp 10.0.0.7:5432: connection refused")
)

// find stands for a look-up in a database.
func find(id string) (string, error) {
	switch id {
	case "1":
		return "Rex", nil
	case "2":
		return "", errNoPet.Wrap(errNoRows)
	default:
		return "", errNoNetwork
	}
}

// A service in which every error looks the same: those of its handlers, those of
// ServeMux, and panics.
func Example() {
	rs := &apierror.Responder{Logger: slog.New(slog.DiscardHandler)}

	mux := http.NewServeMux()
	mux.Handle("GET /v1/pets/{petId}", rs.Handle(func(w http.ResponseWriter, r *http.Request) error {
		name, err := find(r.PathValue("petId"))
		if err != nil {
			return fmt.Errorf("get pet: %w", err)
		}
		_, err = fmt.Fprintln(w, name)
		return err
	}))
	mux.HandleFunc("GET /v1/panic", func(http.ResponseWriter, *http.Request) { panic("a bug") })

	srv := httptest.NewServer(rs.Recover(rs.Mux(mux)))
	defer srv.Close()

	for _, path := range []string{"/v1/pets/1", "/v1/pets/2", "/v1/pets/3", "/v1/panic", "/v1/dogs"} {
		res, err := http.Get(srv.URL + path)
		if err != nil {
			fmt.Println(err)
			return
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		fmt.Printf("%d %s", res.StatusCode, body)
	}
	// Output:
	// 200 Rex
	// 404 {"code":"pet_not_found","message":"There is no pet with this identifier.","status":404}
	// 500 {"code":"internal","message":"The service failed to answer this request.","status":500}
	// 500 {"code":"internal","message":"The service failed to answer this request.","status":500}
	// 404 {"code":"not_found","message":"There is nothing at this path.","status":404}
}

// A middleware sets the fields that belong to its refusal and leaves the rest to
// the Responder.
func ExampleResponder_Respond() {
	var rs apierror.Responder
	maintenance := apierror.New(http.StatusServiceUnavailable, "unavailable", "The service is being maintained.")
	closed := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "3600")
		rs.Respond(w, r, maintenance)
	})

	rec := httptest.NewRecorder()
	closed.ServeHTTP(rec, httptest.NewRequest("GET", "/v1/pets", nil))
	fmt.Println(rec.Code, rec.Header().Get("Retry-After"))
	fmt.Print(rec.Body)
	// Output:
	// 503 3600
	// {"code":"unavailable","message":"The service is being maintained.","status":503}
}

// Clients that ask for problem details get them, with what is wrong and where.
func ExampleError_WithDetails() {
	invalid := apierror.New(http.StatusBadRequest, "invalid_body", "The body breaks its schema.")

	r := httptest.NewRequest("POST", "/v1/pets", nil)
	r.Header.Set("Accept", "application/problem+json, application/json;q=0.9")
	rec := httptest.NewRecorder()
	new(apierror.Responder).Respond(rec, r, invalid.WithDetails(apierror.Detail{Pointer: "/name", Detail: "is required"}))

	fmt.Println(rec.Header().Get("Content-Type"))
	fmt.Print(rec.Body)
	// Output:
	// application/problem+json
	// {"type":"about:blank","title":"Bad Request","status":400,"detail":"The body breaks its schema.","code":"invalid_body","errors":[{"pointer":"/name","detail":"is required"}]}
}

// Methods that a path does not have are refused with those it has.
func ExampleResponder_Mux() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/pets", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /v1/pets", func(http.ResponseWriter, *http.Request) {})

	rec := httptest.NewRecorder()
	new(apierror.Responder).Mux(mux).ServeHTTP(rec, httptest.NewRequest("DELETE", "/v1/pets", nil))
	fmt.Println(rec.Code, rec.Header().Get("Allow"))
	// Output: 405 GET, HEAD, POST
}
