package compatibility

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/inflight"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// wrapped is a row of the matrix. Its zero value is no middleware at all.
type wrapped struct {
	name string // the exported function or method, and what tells two rows of it apart

	// adds are the fields that the middleware sets on every response that net/http
	// writes. The value "*" stands for any.
	adds map[string]string

	wrap middleware.Middleware
}

// has reports whether the lines of a field have what the middleware adds.
func (m wrapped) has(name string, lines []string) bool {
	return len(m.without(name, lines)) < len(lines)
}

// without returns the lines of a field without the one that the middleware adds.
func (m wrapped) without(name string, lines []string) []string {
	value, ok := m.adds[name]
	if !ok {
		return lines
	}
	i := slices.IndexFunc(lines, func(line string) bool { return value == "*" || line == value })
	if i < 0 {
		return lines
	}
	return slices.Delete(slices.Clone(lines), i, i+1)
}

var (
	responder = &apierror.Responder{Logger: slog.New(slog.DiscardHandler), RequestID: middleware.RequestIDFrom}

	authenticator = testcheck.Must(bearer.New("pets", func(context.Context, string) (string, error) { return "ann", nil }, bearer.Options{Errors: responder}))

	declaration = deprecation.MustNew(deprecation.Options{
		Since:     time.Date(2025, time.December, 5, 0, 0, 0, 0, time.UTC),
		Sunset:    time.Date(2100, time.December, 5, 0, 0, 0, 0, time.UTC),
		Successor: "/v2",
	})
	announced = map[string]string{
		"Deprecation": "@1764892800", "Sunset": "Sun, 05 Dec 2100 00:00:00 GMT", "Link": `</v2>; rel="successor-version"`,
	}
	limited = map[string]string{"X-Ratelimit-Limit": "1000", "X-Ratelimit-Remaining": "*", "X-Ratelimit-Reset": "*"}
)

var middlewares = []wrapped{
	{"apierror.Responder.Handle", nil, func(next http.Handler) http.Handler {
		return responder.Handle(func(w http.ResponseWriter, r *http.Request) error {
			next.ServeHTTP(w, r)
			return nil
		})
	}},
	{"apierror.Responder.Recover", nil, responder.Recover},
	{"apierror.Responder.Mux", nil, func(next http.Handler) http.Handler {
		mux := http.NewServeMux()
		mux.Handle("/", next)
		return responder.Mux(mux)
	}},
	{"deprecation.Declaration.Headers", announced, declaration.Headers},
	{"deprecation.Declaration.Enforce", announced, declaration.Enforce},
	{"deprecation.OnPath", announced, deprecation.OnPath("/", declaration.Headers)},
	{"middleware.RequestID", map[string]string{"X-Request-Id": requestID}, middleware.RequestID},
	{"middleware.AccessLog", nil, accessLog},
	{"middleware.SecurityHeaders", secured, middleware.SecurityHeaders},
	{"middleware.TargetLimit", nil, middleware.TargetLimit(8<<10, responder)},
	{"middleware.BodyLimit", nil, middleware.BodyLimit(16<<20, responder)},
	{"middleware.TrackResponse", nil, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(middleware.TrackResponse(w), r)
		})
	}},
	{"bearer.Authenticator.Identify", nil, authenticator.Identify},
	{"bearer.Authenticator.Require", nil, func(next http.Handler) http.Handler {
		return authenticator.Identify(authenticator.Require(next))
	}},
	{"bearer.Authenticator.Protect", nil, authenticator.Protect},
	{"limit.ByPlan", limited, func(next http.Handler) http.Handler {
		plan := ratelimit.MustPlan("free", ratelimit.Penalty{}, ratelimit.PerDay(1000))
		return limit.ByPlan(func(*http.Request) (string, *ratelimit.Plan, error) { return "ann", plan, nil })(next)
	}},
	{"limit.New", limited, newLimit(limit.Options{})},
	{"limit.New with Context", limited, newLimit(limit.Options{Settle: true})},
	{"limit.New with ChargeIf", limited, newLimit(limit.Options{ChargeIf: limit.NotServerError})},
	{"limit.New with Shadow", limited, newLimit(limit.Options{Shadow: true})},
	{"inflight.Limiter.Middleware", nil, func(next http.Handler) http.Handler {
		return testcheck.Must(inflight.NewProcess(100, inflight.Options{Errors: responder})).Middleware(next)
	}},
	{"middleware.Chain", everythingAdds(), everything},
}

// likeByPlan are functions that make the handler of limit.ByPlan.
var likeByPlan = []string{
	"limit.ByIP", "limit.ByUser", "limit.Addresses.ByIP", "limit.Addresses.ByUser", "limit.Addresses.ByPlan",
}

// everything is a service with all of them.
func everything(next http.Handler) http.Handler {
	return middleware.Chain(responder.Handle(func(w http.ResponseWriter, r *http.Request) error {
		next.ServeHTTP(w, r)
		return nil
	}),
		middleware.RequestID,
		accessLog,
		responder.Recover,
		middleware.SecurityHeaders,
		middleware.TargetLimit(8<<10, responder),
		declaration.Headers,
		authenticator.Identify,
		newLimit(limit.Options{ChargeIf: limit.NotServerError, Settle: true}),
		authenticator.Require,
		middleware.BodyLimit(16<<20, responder),
		declaration.Enforce,
	)
}

func everythingAdds() map[string]string {
	all := map[string]string{"X-Request-Id": requestID}
	for _, adds := range []map[string]string{announced, limited, secured} {
		maps.Copy(all, adds)
	}
	return all
}

// secured are the fields of SecurityHeaders. Handlers of the matrix do not set them.
var secured = map[string]string{
	"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "*", "Referrer-Policy": "*", "Cache-Control": "*",
	"Strict-Transport-Security": "*",
}

// accessLog makes every line and drops it.
func accessLog(next http.Handler) http.Handler {
	return middleware.AccessLog(slog.New(enabled{slog.DiscardHandler}))(next)
}

type enabled struct{ slog.Handler }

func (enabled) Enabled(context.Context, slog.Level) bool { return true }

func newLimit(o limit.Options) middleware.Middleware {
	o.Errors = responder
	plan := ratelimit.MustPlan("free", ratelimit.Penalty{}, ratelimit.PerDay(1000))
	return func(next http.Handler) http.Handler {
		return testcheck.Must(limit.New(testcheck.Must(memory.New(memory.Options{})), func(*http.Request) (ratelimit.Caller, error) {
			return ratelimit.Caller{Subject: "ann", Plan: plan}, nil
		}, o))(next)
	}
}
