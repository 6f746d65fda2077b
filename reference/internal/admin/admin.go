package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/jsonbody"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// Config configures the handler of [New]. Server and Logger are required.
type Config struct {
	// Server returns the server that the endpoints show and change, or nil while it
	// starts.
	Server func() *Server

	// Checks are what /readyz reports, in this order.
	Checks []Check

	// Metrics serves /metrics. Nil: there is no such endpoint.
	Metrics http.Handler

	// Token is the bearer token that requests need. Empty: none.
	Token string

	// Logger gets a line for each request, and the causes of errors.
	Logger *slog.Logger

	// Now is the clock. Nil: time.Now.
	Now func() time.Time
}

// A Server is what the endpoints show and change of a running server.
type Server struct {
	Limiter Limiter      // see [Audited]
	Console http.Handler // of package middleware/console
	Store   Store

	// Plan returns the plan with a name, for a key that may have quotas of its own, by the
	// present settings.
	Plan func(name string, quotas []string) (*ratelimit.Plan, error)

	// Anonymous is the plan of a network, by the present settings.
	Anonymous *ratelimit.Plan

	// Deprecations are the deprecated operations by operationId, by the present settings.
	Deprecations map[string]deprecation.Options
}

// A Store stores what an operator can see.
type Store interface {
	ListKeys(ctx context.Context) ([]store.Key, error)
	store.DailyUses
	store.DeprecatedUses
}

// A Limiter is an engine that an operator can look into.
type Limiter interface {
	ratelimit.Limiter
	engine.Peeker
	engine.Banner
}

type admin struct {
	Config
	errors *apierror.Responder
	newBan *jsonbody.Body[NewBan]
}

// New returns the handler of the admin listener.
func New(c Config) (http.Handler, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	a := &admin{Config: c, errors: &apierror.Responder{Logger: c.Logger, RequestID: middleware.RequestIDFrom}}
	var err error
	if a.newBan, err = jsonbody.New[NewBan]([]byte(newBanSchema), "#", jsonbody.Options{}); err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}
	mux := a.routes()
	return middleware.Chain(a.errors.Mux(mux),
		middleware.RequestID, a.logRequests(mux), a.errors.Recover, middleware.SecurityHeaders,
		a.ownHost, a.sameOrigin), nil
}

// routes returns the endpoints. All but /, /healthz and /readyz require the token.
func (a *admin) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", http.RedirectHandler("/console/", http.StatusSeeOther))
	mux.Handle("/console/", a.guard(a.serving(func(w http.ResponseWriter, r *http.Request, s *Server) error {
		s.Console.ServeHTTP(w, r)
		return nil
	})))
	for _, method := range []string{"GET ", "OPTIONS "} { // some load balancers check with OPTIONS
		mux.HandleFunc(method+"/healthz", healthy)
		mux.Handle(method+"/readyz", a.errors.Handle(a.readyz))
	}
	for pattern, handler := range map[string]http.Handler{
		"GET /bans":                a.serving(a.listBans),
		"POST /bans":               a.serving(a.ban),
		"DELETE /bans":             a.serving(a.unban),
		"GET /usage":               a.serving(a.usage),
		"GET /deprecations":        a.serving(a.listDeprecations),
		"GET /debug/pprof/":        http.HandlerFunc(pprof.Index),
		"GET /debug/pprof/cmdline": http.HandlerFunc(pprof.Cmdline),
		"GET /debug/pprof/profile": http.HandlerFunc(pprof.Profile),
		"GET /debug/pprof/trace":   http.HandlerFunc(pprof.Trace),
		"GET /debug/pprof/symbol":  http.HandlerFunc(pprof.Symbol),
		"POST /debug/pprof/symbol": http.HandlerFunc(pprof.Symbol),
		"GET /metrics":             a.Metrics,
	} {
		if handler != nil {
			mux.Handle(pattern, a.guard(handler))
		}
	}
	return mux
}

// retryAfter is how long a client should wait while something cannot be used.
const retryAfter = 5 * time.Second

var (
	errStarting = &apierror.Error{Status: http.StatusServiceUnavailable, Code: "unavailable", RetryAfter: retryAfter,
		Message: "The server is still starting. Try again later."}
	errUnavailable = &apierror.Error{Status: http.StatusServiceUnavailable, Code: "unavailable", RetryAfter: retryAfter,
		Message: "The database or Redis cannot be used at the moment. GET /readyz and the log say why."}
)

// serving returns the handler of an endpoint that answers only once the server has started.
func (a *admin) serving(h func(w http.ResponseWriter, r *http.Request, s *Server) error) http.Handler {
	return a.errors.Handle(func(w http.ResponseWriter, r *http.Request) error {
		s := a.Server()
		if s == nil {
			return errStarting
		}
		err := h(w, r, s)
		_, public := errors.AsType[*apierror.Error](err)
		if !public && (errors.Is(err, store.ErrUnavailable) || errors.Is(err, ratelimit.ErrUnavailable)) {
			return errUnavailable.Wrap(err)
		}
		return err
	})
}
