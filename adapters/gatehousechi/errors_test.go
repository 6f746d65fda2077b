package gatehousechi_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	chimiddleware "github.com/go-chi/chi/v5/middleware"

	"github.com/animalstore/gatehouse/adapters/gatehousechi"
	"github.com/animalstore/gatehouse/adapters/internal/contract"
	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/limit"
)

var errs = &apierror.Responder{Logger: slog.New(slog.DiscardHandler)}

func ok(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }

// routes adds what the tests ask for.
func routes(r chi.Router) {
	r.Get("/", ok)
	r.Get("/pets", ok)
	r.Post("/pets", ok)
	r.Get("/pets/{id}", ok)
	r.Get("/pets/{id:[0-9]+}/photos", ok)
	r.HandleFunc("/any", ok)
	r.Get("/api/health", ok) // beside the mount
	r.Get("/api/twice", ok)
	r.Route("/api", func(r chi.Router) {
		r.Put("/", ok)
		r.Delete("/health", ok)
		r.Get("/twice", ok)
		r.Route("/v1/{tenant}", func(r chi.Router) {
			r.With(middleware.SecurityHeaders).Patch("/users", ok)
			r.Group(func(r chi.Router) { r.Head("/users", ok) })
		})
	})
	sub := chi.NewRouter()
	sub.Post("/upload", ok)
	r.Mount("/files", sub)
	r.Mount("/plain", http.HandlerFunc(ok))
	own := chi.NewRouter()
	own.NotFound(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "mine", 404) })
	own.Get("/here", ok)
	r.Mount("/own", own)
}

func TestSetErrors(t *testing.T) {
	for name, router := range map[string]func() chi.Router{
		"before the routes": func() chi.Router {
			r := chi.NewRouter()
			gatehousechi.SetErrors(r, errs)
			routes(r)
			return r
		},
		"after the routes": func() chi.Router {
			r := chi.NewRouter()
			routes(r)
			gatehousechi.SetErrors(r, errs)
			return r
		},
		"inside a mux": func() chi.Router {
			r := chi.NewRouter()
			gatehousechi.SetErrors(r, nil)
			r.Group(routes)
			return r
		},
	} {
		r := router()
		for _, test := range []struct {
			method, path string
			status       int
			allow        string
		}{
			{"GET", "/pets", 200, ""},
			{"PATCH", "/api/v1/acme/users", 200, ""},
			{"GET", "/nowhere", 404, ""},
			{"PROPFIND", "/pets", 404, ""},
			{"GET", "/pets/", 404, ""},
			{"GET", "/api/nowhere", 404, ""},
			{"GET", "/api/v1/acme/nowhere", 404, ""},
			{"GET", "/files", 404, ""},
			{"GET", "/files/nowhere", 404, ""},
			{"GET", "/pets/rex/photos", 404, ""},
			{"DELETE", "/pets", 405, "GET, POST"},
			{"HEAD", "/pets", 405, "GET, POST"},
			{"OPTIONS", "/", 405, "GET"},
			{"DELETE", "/pets/17", 405, "GET"},
			{"DELETE", "/pets/17/photos", 405, "GET"},
			{"GET", "/api", 405, "PUT"},
			{"GET", "/api/", 405, "PUT"},
			{"POST", "/api/health", 405, "DELETE, GET"},
			{"POST", "/api/twice", 405, "GET"},
			{"GET", "/api/v1/acme/users", 405, "HEAD, PATCH"},
			{"GET", "/files/upload", 405, "POST"},
			{"POST", "http://pets.example", 405, "GET"}, // an empty path is / (RFC 9110 section 4.2.3)
			{"POST", "/own/here", 405, "GET"},
		} {
			w := httptest.NewRecorder()
			r.ServeHTTP(w, httptest.NewRequest(test.method, test.path, nil))
			if w.Code != test.status || w.Header().Get("Allow") != test.allow {
				t.Errorf("%s: %s %s: %d with Allow %q, want %d with %q", name, test.method, test.path,
					w.Code, w.Header().Get("Allow"), test.status, test.allow)
			}
			var envelope apierror.Error
			if w.Code >= 400 && test.method != "HEAD" && (json.Unmarshal(w.Body.Bytes(), &envelope) != nil || envelope.Status != w.Code) {
				t.Errorf("%s: %s %s: not the envelope: %s", name, test.method, test.path, w.Body)
			}
		}
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest("GET", "/own/nowhere", nil))
		if w.Body.String() != "mine\n" {
			t.Errorf("%s: a mounted router's own 404 is replaced: %s", name, w.Body)
		}
	}
}

// The package comment says that GetHead of chi serves HEAD.
func TestGetHead(t *testing.T) {
	r := chi.NewRouter()
	r.Use(chimiddleware.GetHead)
	gatehousechi.SetErrors(r, errs)
	r.Get("/pets", ok)
	r.Post("/orders", ok)
	for path, want := range map[string]int{"/pets": 200, "/orders": 405, "/nowhere": 404} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest("HEAD", path, nil))
		if w.Code != want {
			t.Errorf("HEAD %s: %d, want %d", path, w.Code, want)
		}
	}
}

// The package comment says that middlewares added with Use count and log 404 and 405,
// and see the route.
func TestMiddlewaresOfTheRouter(t *testing.T) {
	var log contract.Log
	r := chi.NewRouter()
	r.Use(middleware.AccessLog(log.Logger()), errs.Recover, contract.Limiter(t, limit.Options{ChargeIf: limit.NotServerError}))
	gatehousechi.SetErrors(r, errs)
	r.Route("/pets", func(r chi.Router) {
		r.Get("/{id}", ok)
		r.Get("/{id}/panic", func(http.ResponseWriter, *http.Request) { panic("no") })
	})
	send := contract.Serve(t, r)
	for _, test := range []struct {
		method, path, remaining string
		line                    contract.Line
	}{
		{"GET", "/pets/17", "2", contract.Line{Route: "/pets/{id}", Status: 200, Bytes: 2}},
		{"GET", "/pets/17/panic", "1", contract.Line{Route: "/pets/{id}/panic", Status: 500, Bytes: 88}}, // refunded
		{"GET", "/nowhere", "1", contract.Line{Status: 404, Bytes: 77}},
		{"PUT", "/pets/17", "0", contract.Line{Route: "/pets/*", Status: 405, Bytes: 135}},
	} {
		got := send(test.method, test.path, "")
		if line := log.Line(t); line != test.line || got.Remaining() != test.remaining {
			t.Errorf("%s %s: the log says %+v, and %s are left; want %+v and %s", test.method, test.path, line, got.Remaining(), test.line, test.remaining)
		}
	}
}

// authenticate copies the request, as most authentication does.
func authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		type key struct{}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), key{}, "ann")))
	})
}

// The log has the whole route with Route, whatever is between. Without it, it has what
// the comment of Route says; if this test fails there, Route may no longer be needed.
func TestRoute(t *testing.T) {
	none := func(next http.Handler) http.Handler { return next }
	for _, test := range []struct {
		path          string
		want, without string
	}{
		{"/pets/17", "/pets/{id}", ""},
		{"/v1/pets/17", "/v1/pets/{id}", ""},
		{"/v2/pets/17", "/v2/pets/{id}", ""},
		{"/broken", "/broken", ""},
		{"/nowhere", "", ""},
		{"/v1/nowhere", "/v1/*", ""},
	} {
		for _, with := range []bool{true, false} {
			var out strings.Builder
			log := slog.New(slog.NewTextHandler(&out, nil))
			route, want := gatehousechi.Route, test.want
			if !with {
				route, want = none, test.without
			}
			r := chi.NewRouter()
			r.Use(middleware.AccessLog(log), errs.Recover, route, authenticate)
			pet := func(http.ResponseWriter, *http.Request) {}
			r.Get("/pets/{id}", pet)
			r.Get("/broken", func(http.ResponseWriter, *http.Request) { panic("no") })
			r.Route("/v1", func(r chi.Router) {
				r.Use(authenticate)
				r.Get("/pets/{id}", pet)
			})
			r.Mount("/v2", func() http.Handler {
				r := chi.NewRouter()
				r.With(authenticate).Get("/pets/{id}", pet)
				return r
			}())
			request := httptest.NewRequest("GET", test.path, nil)
			if with && test.want == "" {
				request.Pattern, want = "/outer/", "/outer/" // of a mux around the router stays
			}
			r.ServeHTTP(httptest.NewRecorder(), request)
			found := regexp.MustCompile(`msg=request .*route=(\S+) `).FindStringSubmatch(out.String())
			if found == nil || strings.Trim(found[1], `"`) != want {
				t.Errorf("%s, with Route %t: the route is not %q in\n%s", test.path, with, want, &out)
			}
		}
	}
}
