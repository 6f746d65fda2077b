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
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// Config configures the handler of [New].
type Config struct {
	// Bans lists and ends the bans of the engine.
	Bans ratelimit.Banner

	// Checks are what /readyz reports, in this order.
	Checks []Check

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
	auth   *bearer.Authenticator[operator]
	errors *apierror.Responder
	wrong  *memory.Limiter // counts wrong tokens by network
}

// operator is the principal of a client with the token.
type operator struct{}

// New returns the handler of the admin listener.
func New(c Config) (http.Handler, error) {
	if c.Bans == nil {
		return nil, errors.New("admin: Config.Bans must be set, got nil")
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	a := &admin{Config: c, errors: &apierror.Responder{Logger: c.Logger, RequestID: middleware.RequestIDFrom}}
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
	mux.HandleFunc("GET /healthz", healthy)
	mux.Handle("GET /readyz", a.errors.Handle(a.readiness))
	for pattern, handler := range map[string]http.Handler{
		"GET /bans":                a.errors.Handle(a.listBans),
		"DELETE /bans":             a.errors.Handle(a.unban),
		"GET /debug/pprof/":        http.HandlerFunc(pprof.Index),
		"GET /debug/pprof/cmdline": http.HandlerFunc(pprof.Cmdline),
		"GET /debug/pprof/profile": http.HandlerFunc(pprof.Profile),
		"GET /debug/pprof/trace":   http.HandlerFunc(pprof.Trace),
		"GET /debug/pprof/symbol":  http.HandlerFunc(pprof.Symbol),
		"POST /debug/pprof/symbol": http.HandlerFunc(pprof.Symbol),
	} {
		mux.Handle(pattern, a.guard(handler))
	}
	return middleware.Chain(a.errors.Mux(mux),
		middleware.RequestID, a.audit(mux), middleware.Recover(a.errors), middleware.SecurityHeaders,
		a.ownHost, a.sameSite, a.limitGuesses, a.auth.Identify, a.countGuesses), nil
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
