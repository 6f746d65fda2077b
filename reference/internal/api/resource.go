package api

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
)

const (
	petsPath     = "/v1/pets"
	petPath      = "/v1/pets/{petId}"
	usagePath    = "/v1/usage"
	documentPath = "/openapi.json"
	docsPath     = "/docs"

	usagePattern = http.MethodGet + " " + usagePath // of getUsage in ServeMux
)

// serveFunc answers a request. ctx is the context of the request. It has no deadline: a
// serveFunc sets one when it calls the store.
type serveFunc func(ctx context.Context, w http.ResponseWriter, r *http.Request) error

// A resource is a path with its operations by method.
type resource struct {
	path       string
	operations map[string]operation
}

type operation struct {
	id    string // in the OpenAPI document
	serve serveFunc
}

func (a *api) resources() []resource {
	return []resource{
		{petsPath, map[string]operation{
			http.MethodGet:  {"listPets", a.listPets},
			http.MethodPost: {"createPet", a.createPet},
		}},
		{petPath, map[string]operation{
			http.MethodGet: {"getPet", a.getPet},
		}},
		{usagePath, map[string]operation{
			http.MethodGet: {"getUsage", a.getUsage},
		}},
	}
}

// register puts the operations of rs on mux, and OPTIONS on each path.
func (a *api) register(mux *http.ServeMux, rs []resource) {
	for _, res := range rs {
		for method, op := range res.operations {
			a.handle(mux, method, res.path, a.handler(op.serve))
		}
		a.handle(mux, http.MethodOptions, res.path, options(res.allow()))
	}
}

func (a *api) handle(mux *http.ServeMux, method, path string, h http.Handler) {
	mux.Handle(method+" "+path, h)
	a.static.add(method, path, h)
}

// allow returns the methods of the resource as the value of Allow. ServeMux gives
// HEAD to GET.
func (res resource) allow() string {
	methods := slices.AppendSeq([]string{http.MethodOptions}, maps.Keys(res.operations))
	if slices.Contains(methods, http.MethodGet) {
		methods = append(methods, http.MethodHead)
	}
	slices.Sort(methods)
	return strings.Join(methods, ", ")
}

func (a *api) handler(serve serveFunc) http.Handler {
	return a.errors.Handle(func(w http.ResponseWriter, r *http.Request) error {
		return storeError(w, serve(r.Context(), w, r))
	})
}

// isRead reports whether r is GET or HEAD.
func isRead(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead
}

// options answers OPTIONS (RFC 9110 section 9.3.7). CORS preflights do not reach it.
func options(allow string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", allow)
		w.WriteHeader(http.StatusNoContent)
	})
}
