package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/apikey/sqlkeys"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/jsonbody"
	"github.com/animalstore/gatehouse/reference/internal/openapi"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// MaxTarget is the length of the longest request target in bytes. The server must
// accept longer header sections, so that this handler can answer 414.
const MaxTarget = 8 << 10

// maxBody is the size of the largest request body in bytes.
const maxBody = 64 << 10

type api struct {
	Config
	errors *apierror.Responder
	newPet *jsonbody.Body[store.NewPet] // the schema in the document decides which are valid
	pages  *pageCache

	pageLimit openapi.Range // of the parameter limit

	client *clientip.Source // finds the address of a client

	service *http.ServeMux // the operations, below /v1
	site    *http.ServeMux // the files that need no key
}

// New returns the handler of the whole API. An error names the field of the
// Config that is wrong.
func New(c Config) (http.Handler, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	a := &api{Config: c, service: http.NewServeMux(), site: http.NewServeMux()}
	a.pages = newPageCache(c.Pets, c.StoreTimeout)
	a.errors = &apierror.Responder{Logger: c.Logger, RequestID: middleware.RequestIDFrom}

	var err error
	if a.client, err = c.Client(); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	document, err := openapi.New(c.Document())
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	if a.pageLimit, err = openapi.Limit(document); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	a.newPet, err = jsonbody.New[store.NewPet](document, openapi.NewPetSchema, jsonbody.Options{MaxBytes: maxBody})
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	resources := a.resources()
	a.register(resources)
	if err := a.registerSite(document); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	return a.gate(resources)
}

// gate wraps the operations with the middlewares, in the order of the package
// documentation.
func (a *api) gate(resources []resource) (http.Handler, error) {
	headers, enforce, err := a.deprecationMiddlewares(resources)
	if err != nil {
		return nil, err
	}
	format, err := apikey.NewFormat(KeyPrefix)
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	verifier, err := apikey.NewVerifier(format, sqlkeys.NewStore(a.Keys.KeyByDigest, a.Keys.KeyUsed, a.Plan), apikey.Options{Source: a.client, Now: a.Now})
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	auth, err := bearer.New("pets", verifier.Verify, bearer.Options{Errors: a.errors})
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	limit, limitUncharged, err := a.limits()
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}

	targets := middleware.TargetLimit(MaxTarget, a.errors)
	site := a.errors.Mux(a.site)
	service := auth.Require(middleware.Chain(a.errors.Mux(a.service), enforce...))
	gated := middleware.Chain(byPath(service, site),
		auth.Identify, a.Telemetry.Authentication, a.chooseLimit(limit, limitUncharged), targets)
	front := slices.Concat([]middleware.Middleware{
		middleware.RequestID, middleware.AccessLog(a.Logger), a.addInfo, a.errors.Recover, a.Telemetry.Panics, middleware.SecurityHeaders,
	}, headers, []middleware.Middleware{allowOrigins(a.CORSOrigins, limitUncharged)})
	return middleware.Chain(choose(isForSite, limitUncharged(targets(site)), gated), front...), nil
}

// choose returns a handler that sends the requests for which a condition holds to one handler,
// and all others to another one.
func choose(condition func(*http.Request) bool, then, otherwise http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if condition(r) {
			then.ServeHTTP(w, r)
			return
		}
		otherwise.ServeHTTP(w, r)
	})
}

// isForSite reports whether a request is for a file that needs no key, and so bypasses the gate.
// A request that the site would answer with an error, such as a 405, does not, and is counted.
func isForSite(r *http.Request) bool { return requestInfoOf(r.Context()).route.site }

// byPath sends paths below /v1 to service and all others to site, which answers 404
// there.
func byPath(service, site http.Handler) http.Handler {
	wholeServer := options("GET, HEAD, OPTIONS, POST")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case r.RequestURI == "*" && r.Method == http.MethodOptions:
			wholeServer.ServeHTTP(w, r)
		case path == "/v1" || strings.HasPrefix(path, "/v1/"):
			service.ServeHTTP(w, r)
		default:
			site.ServeHTTP(w, r)
		}
	})
}
