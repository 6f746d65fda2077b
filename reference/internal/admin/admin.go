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
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/build"
	"github.com/animalstore/gatehouse/reference/internal/keys"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// Config configures the handler of [New]. Server is required.
type Config struct {
	// Server returns the server that the endpoints show and change, or nil while it
	// starts.
	Server func() *Server

	// Checks are what /readyz reports, in this order.
	Checks []Check

	// Build says what the program was built from, for GET /state.
	Build build.Info

	// Metrics serves /metrics. Nil: there is no such endpoint.
	Metrics http.Handler

	// Token is the bearer token that requests need. Empty: none.
	Token string

	// Logger gets a line for each request except health checks, and the causes of
	// errors. Nil: slog.Default.
	Logger *slog.Logger

	// Now is the clock. Nil: time.Now.
	Now func() time.Time
}

// A Server is a server that serves, as far as the endpoints show and change it.
type Server struct {
	Limiter Limiter      // see [Audited]
	Console http.Handler // of package middleware/console
	Store   Store

	// Plan returns the plans that a key can have, by the present settings.
	Plan keys.PlanFunc

	// Anonymous is the plan of a network, by the present settings.
	Anonymous *ratelimit.Plan

	// Deprecations are the deprecated operations by operationId, by the present settings.
	Deprecations map[string]deprecation.Options

	// DailyUse returns the days of an owner, as [store.DailyUses] says, with the requests
	// that are not stored yet.
	DailyUse func(ctx context.Context, owner string, since time.Time) ([]store.DailyUse, error)

	// Report returns the numbers for GET /state.
	Report func() Report
}

// A Store stores what an operator can see and change.
type Store interface {
	store.Keys
	store.Audits
	store.DeprecatedUses
}

// A Limiter is an engine that an operator can look into.
type Limiter interface {
	ratelimit.Limiter
	engine.Peeker
	ratelimit.Banner
}

type admin struct {
	Config
	auth    *bearer.Authenticator[operator]
	errors  *apierror.Responder
	wrong   *memory.Limiter // counts wrong tokens by network
	started time.Time
}

// operator is the principal of a client with the token.
type operator struct{}

// New returns the handler of the admin listener.
func New(c Config) (http.Handler, error) {
	if c.Server == nil {
		return nil, errors.New("admin: Config.Server must be set, got nil")
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	a := &admin{Config: c, started: c.Now(), errors: &apierror.Responder{Logger: c.Logger, RequestID: middleware.RequestIDFrom}}
	var err error
	a.auth, err = bearer.New("petstore admin", verifyToken(c.Token), bearer.Options{
		TokenName: "admin token",
		Errors:    a.errors,
	})
	if err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}
	if a.wrong, err = memory.New(memory.Options{Now: c.Now, MaxSubjects: maxGuessers}); err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}

	mux := http.NewServeMux()
	mux.Handle("GET /{$}", http.RedirectHandler("/console/", http.StatusSeeOther))
	mux.Handle("/console/", a.askForToken(a.serving(func(w http.ResponseWriter, r *http.Request, s *Server) error {
		s.Console.ServeHTTP(w, r)
		return nil
	})))
	mux.HandleFunc("GET /healthz", healthy)
	mux.Handle("GET /readyz", a.errors.Handle(a.readyz))
	for pattern, handler := range map[string]http.Handler{
		"GET /state":               a.errors.Handle(a.state),
		"GET /bans":                a.serving(a.listBans),
		"POST /bans":               a.serving(a.ban),
		"DELETE /bans":             a.serving(a.unban),
		"GET /keys":                a.serving(a.listKeys),
		"POST /keys":               a.serving(a.createKey),
		"DELETE /keys/{id}":        a.serving(a.revokeKey),
		"POST /keys/{id}/rotate":   a.serving(a.rotateKey),
		"GET /usage":               a.serving(a.usage),
		"GET /deprecations":        a.serving(a.listDeprecations),
		"GET /audit":               a.serving(a.listAudit),
		"GET /debug/pprof/":        http.HandlerFunc(pprof.Index),
		"GET /debug/pprof/cmdline": http.HandlerFunc(pprof.Cmdline),
		"GET /debug/pprof/profile": http.HandlerFunc(pprof.Profile),
		"GET /debug/pprof/trace":   http.HandlerFunc(pprof.Trace),
		"GET /debug/pprof/symbol":  http.HandlerFunc(pprof.Symbol),
		"POST /debug/pprof/symbol": http.HandlerFunc(pprof.Symbol),
	} {
		mux.Handle(pattern, a.guard(handler))
	}
	if c.Metrics != nil {
		mux.Handle("GET /metrics", a.guard(c.Metrics))
	}
	return middleware.Chain(a.errors.Mux(mux),
		middleware.RequestID, a.logRequests(mux), middleware.Recover(a.errors), middleware.SecurityHeaders,
		passwordAsToken, a.auth.Identify, a.dropBodies, a.ownHost, a.sameOrigin, a.limitGuesses), nil
}

var errStarting = apierror.New(http.StatusServiceUnavailable, apierror.CodeUnavailable, "The server is still starting. Try again later.")

// serving returns the handler of an endpoint that requires a server which serves.
func (a *admin) serving(h func(w http.ResponseWriter, r *http.Request, s *Server) error) http.Handler {
	return a.errors.Handle(func(w http.ResponseWriter, r *http.Request) error {
		s := a.Server()
		if s == nil {
			return errStarting
		}
		return h(w, r, s)
	})
}
