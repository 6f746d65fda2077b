package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/build"
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

type admin struct {
	Config
	auth    *bearer.Authenticator[operator]
	errors  *apierror.Responder
	wrong   *memory.Limiter // counts wrong tokens by network
	started time.Time
	bans    banCount
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
		MaxToken:  len(c.Token) + 1, // not zero, which means the default
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
	if err := a.registerConsole(mux); err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}
	mux.HandleFunc("GET /healthz", healthy)
	mux.Handle("GET /readyz", a.errors.Handle(a.readyz))
	for pattern, handler := range map[string]http.Handler{
		"GET /state":               a.errors.Handle(a.state),
		"GET /top":                 a.serving(a.top),
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
		a.auth.Identify, a.dropBodies, a.ownHost, a.sameOrigin, a.limitGuesses), nil
}

// guard requires the token, if there is one.
func (a *admin) guard(next http.Handler) http.Handler {
	if a.Token == "" {
		return next
	}
	return a.auth.Require(next)
}

// trusted reports whether a request may see the texts of errors.
func (a *admin) trusted(r *http.Request) bool {
	_, ok := bearer.FromContext[operator](r.Context())
	return ok || a.Token == ""
}

// verifyToken compares digests, so that its duration does not depend on the token.
func verifyToken(token string) bearer.VerifyFunc[operator] {
	want := sha256.Sum256([]byte(token))
	return func(_ context.Context, sent string) (operator, error) {
		got := sha256.Sum256([]byte(sent))
		if token == "" || subtle.ConstantTimeCompare(got[:], want[:]) == 0 {
			return operator{}, bearer.ErrInvalid
		}
		return operator{}, nil
	}
}
