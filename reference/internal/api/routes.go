package api

import (
	"context"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/animalstore/gatehouse/reference/internal/pages"
)

const (
	petsPath     = "/v1/pets"
	petPath      = "/v1/pets/{petId}"
	usagePath    = "/v1/usage"
	documentPath = "/openapi.json"
	catalogPath  = "/.well-known/api-catalog"
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

// register puts the operations of rs on the service, and OPTIONS on each path.
func (a *api) register(rs []resource) {
	for _, res := range rs {
		for method, op := range res.operations {
			a.service.Handle(method+" "+res.path, a.errors.Handle(func(w http.ResponseWriter, r *http.Request) error {
				r.Pattern = res.path // as in the line of the request; ServeMux adds the method
				return storeError(op.serve(r.Context(), w, r))
			}))
		}
		a.service.Handle(http.MethodOptions+" "+res.path, options(res.allow()))
	}
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

// options answers OPTIONS (RFC 9110 section 9.3.7). CORS preflights do not reach it.
func options(allow string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", allow)
		w.WriteHeader(http.StatusNoContent)
	})
}

// catalog returns what catalogPath serves (RFC 9727): the API, and what describes it. Without a
// public address of the server the references are relative.
func (a *api) catalog() ([]byte, error) {
	type links []map[string]string
	public := strings.TrimSuffix(a.Servers.Production, "/v1")
	return encode(map[string]any{"linkset": []map[string]any{{
		"anchor":       public + "/v1",
		"service-desc": links{{"href": public + documentPath, "type": "application/json"}},
		"service-doc":  links{{"href": public + pages.Path, "type": "text/html"}},
	}}})
}

// registerSite puts the files that need no key on the site: the OpenAPI document, the
// page on which people read it, and the catalog that names both.
func (a *api) registerSite(document []byte) error {
	files, err := pages.Docs(document)
	if err != nil {
		return err
	}
	for _, f := range files {
		a.registerFile(f, pages.Policy, "")
	}
	a.registerFile(pages.File{Path: documentPath, ContentType: "application/json", Body: func() ([]byte, error) { return document, nil }}, "", "")
	a.registerFile(pages.File{
		Path: catalogPath, ContentType: `application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"`, Body: a.catalog,
	}, "", "<"+catalogPath+`>; rel="api-catalog"`)
	return nil
}

// registerFile serves a file, which caches may store and must revalidate. A policy of ""
// is that of the API, and a link of "" is none. The file is made for the first request, so that
// no start waits for it.
func (a *api) registerFile(f pages.File, policy, link string) {
	first := sync.OnceValues(func() (*page, error) {
		body, err := f.Body()
		p := newPage(body, link).compressed()
		p.contentType, p.varies = []string{f.ContentType}, true
		return p, err
	})
	a.site.Handle(http.MethodGet+" "+f.Path, a.errors.Handle(func(w http.ResponseWriter, r *http.Request) error {
		p, err := first()
		if err != nil {
			return err
		}
		w.Header().Set("Cache-Control", "no-cache")
		if policy != "" {
			w.Header().Set("Content-Security-Policy", policy)
		}
		return p.serve(w, r)
	}))
	a.site.Handle(http.MethodOptions+" "+f.Path, options("GET, HEAD, OPTIONS"))
}

// A route is the pattern that a request matches. Code that treats operations
// differently must use the route and never the path of the request, which has many
// spellings: /v1/%75sage is /v1/usage (RFC 3986 section 2.3).
type route struct {
	pattern string // the path pattern, such as "/v1/pets/{petId}"; "" if no pattern matches
	site    bool   // a file of the site, which needs no key
	usage   bool   // the operation getUsage
}

// routeOf returns the route of a request. HEAD has the route of GET.
func (a *api) routeOf(r *http.Request) route {
	if p := r.URL.EscapedPath(); path.Clean(p) != p {
		return route{} // ServeMux would redirect, which is answered with 404
	}
	_, match := a.service.Handler(r)
	if match == "" {
		_, match = a.site.Handler(r)
		return route{pattern: pathOf(match), site: match != ""}
	}
	return route{pattern: pathOf(match), usage: match == http.MethodGet+" "+usagePath}
}

// pathOf cuts the method off a pattern.
func pathOf(pattern string) string {
	_, p, _ := strings.Cut(pattern, " ")
	return p
}
