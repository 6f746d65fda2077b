package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/jsonbody"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/openapi"
)

// MaxTarget is the length of the longest request target in octets. A server that
// answers 414 to longer ones must read header sections that are longer still.
const MaxTarget = 8 << 10

// maxBody is the size of the largest request body in octets.
const maxBody = 64 << 10

type api struct {
	Config
	errors *apierror.Responder
	newPet *jsonbody.Body[newPet]
	limit  openapi.Range

	service *http.ServeMux // the operations, below /v1
	site    *http.ServeMux // the pages that need no key
}

// New returns the handler of the whole API. An error names the field of the
// Config that is wrong.
func New(c Config) (http.Handler, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	a := &api{Config: c, service: http.NewServeMux(), site: http.NewServeMux()}
	a.errors = &apierror.Responder{Logger: c.Logger, RequestID: middleware.RequestIDFrom}

	document, err := Document(c.Deprecations)
	if err != nil {
		return nil, fmt.Errorf("api: Config.Deprecations: %w", err)
	}
	a.limit = document.Limit()
	a.newPet, err = jsonbody.New[newPet](document.JSON(), openapi.NewPetSchema, jsonbody.Options{MaxBytes: maxBody})
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	resources := a.resources()
	a.register(a.service, resources)
	shown, err := newPage(document.JSON())
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	a.site.Handle(http.MethodGet+" "+documentPath, a.errors.Handle(shown.serve))
	a.site.Handle(http.MethodOptions+" "+documentPath, options("GET, HEAD, OPTIONS"))
	return a.gate(resources)
}

// gate puts everything around the operations in the order that the package
// documentation has.
func (a *api) gate(resources []resource) (http.Handler, error) {
	announce, remove, err := a.leaving(resources)
	if err != nil {
		return nil, err
	}
	verifier, err := apikey.NewVerifier(a.KeyFormat, keyStore{a.Keys, a.Plan}, apikey.Options{Now: a.Now})
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	auth, err := bearer.New("pets", verifier.Verify, bearer.Options{Errors: a.errors})
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	charge, err := ratelimit.New(a.Limiter, a.caller, ratelimit.Options{
		OnFailure:    a.OnLimiterFailure,
		DraftHeaders: a.DraftHeaders,
		Refund:       true,
		Observe:      observe,
		Errors:       a.errors,
	})
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	spare, err := ratelimit.New(a.Limiter, a.unchargedCaller, ratelimit.Options{
		OnFailure:    ratelimit.FailOpen, // what follows says that the limiter fails, if that matters
		DraftHeaders: a.DraftHeaders,
		Observe:      observeUncharged,
		Errors:       a.errors,
	})
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}

	targets := middleware.TargetLimit(MaxTarget, a.errors)
	site := a.errors.Mux(a.site)
	service := auth.Require(middleware.Chain(a.errors.Mux(a.service), remove...))
	gated := middleware.Chain(split(service, site),
		auth.Identify, a.count(charge, spare), targets)
	front := slices.Concat([]middleware.Middleware{
		middleware.RequestID, a.enter, a.logRequests, middleware.Recover(a.errors), middleware.SecurityHeaders,
	}, announce, []middleware.Middleware{allowOrigins(a.Origins, spare)})
	return middleware.Chain(public(spare(targets(site)), gated), front...), nil
}

// public sends requests for pages that need no key to site, around the gate. What
// site would answer with an error, such as a 405, is counted like everything else.
func public(site, gated http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if visitOf(r.Context()).route.page {
			site.ServeHTTP(w, r)
			return
		}
		gated.ServeHTTP(w, r)
	})
}

// split sends paths below /v1 to service, and the others to site, which knows no
// operation and so answers 404.
func split(service, site http.Handler) http.Handler {
	server := options("GET, HEAD, OPTIONS, POST")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case r.RequestURI == "*" && r.Method == http.MethodOptions:
			server.ServeHTTP(w, r) // asks about the server as a whole
		case path == "/v1" || strings.HasPrefix(path, "/v1/"):
			service.ServeHTTP(w, r)
		default:
			site.ServeHTTP(w, r)
		}
	})
}
