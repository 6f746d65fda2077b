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

// Config says what [New] makes a handler of.
type Config struct {
	// Bans is the engine whose bans are listed and ended.
	Bans ratelimit.Banner

	// Checks are what /readyz reports, in this order.
	Checks []Check

	// Token is the bearer token that is asked for. Empty: none is.
	Token string

	// Logger gets a line for each request but health checks, and the causes of
	// failures. Nil: slog.Default.
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

// operator is the principal of a client that knows the token.
type operator struct{}

// New returns the handler of the admin listener.
func New(c Config) (http.Handler, error) {
	if c.Bans == nil {
		return nil, errors.New("admin: Config.Bans: is nil")
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	a := &admin{Config: c, errors: &apierror.Responder{Logger: c.Logger, RequestID: middleware.RequestIDFrom}}
	var err error
	a.auth, err = bearer.New("petstore admin", verifyToken(c.Token), bearer.Options{
		MaxToken:  len(c.Token) + 1, // one more, or else zero would mean the default
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
		"DELETE /bans":             a.errors.Handle(a.liftBan),
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

// guard asks for the token, if there is one.
func (a *admin) guard(next http.Handler) http.Handler {
	if a.Token == "" {
		return next
	}
	return a.auth.Require(next)
}

// trusted reports whether a request may see everything.
func (a *admin) trusted(r *http.Request) bool {
	_, ok := bearer.FromContext[operator](r.Context())
	return ok || a.Token == ""
}

// verifyToken compares digests, so that the time it takes says nothing about the
// token.
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
