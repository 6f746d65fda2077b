package api

import (
	"log/slog"
	"net/http"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

const codeAccessDenied apierror.Code = "access_denied"

var (
	errNetworkDenied = apierror.New(http.StatusForbidden, codeAccessDenied,
		"The operator of this service refuses requests from your network.").Preencoded()
	errOwnerDenied = apierror.New(http.StatusForbidden, codeAccessDenied,
		"The operator of this service refuses requests with this API key.").Preencoded()
)

// denyNetworks is a middleware that refuses clients in Config.Deny.Networks, before their
// key is looked up.
func (a *api) denyNetworks(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.deny.hasAddr(requestInfoOf(r.Context()).addr) {
			a.refuse(w, r, a.Anonymous, errNetworkDenied)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// checkOwner is a middleware that refuses keys of Config.Deny.Owners, and marks those of
// Config.Allow.Owners.
func (a *api) checkOwner(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, ok := bearer.FromContext[apikey.Principal](r.Context())
		switch {
		case !ok:
		case a.deny.hasOwner(p.Owner):
			middleware.SetLogAttrs(r.Context(), slog.String("key", p.KeyID))
			a.refuse(w, r, p.Plan, errOwnerDenied)
			return
		case a.allow.hasOwner(p.Owner):
			markAllowed(r, requestInfoOf(r.Context()))
		}
		next.ServeHTTP(w, r)
	})
}

// refuse answers without asking the limiter, which may be another machine. The header
// fields show the plan with nothing used, because such requests are not counted.
func (a *api) refuse(w http.ResponseWriter, r *http.Request, plan *ratelimit.Plan, err error) {
	d := engine.Uncounted(plan, 1, a.Now())
	a.Headers.Set(w.Header(), &d)
	middleware.SetLogAttrs(r.Context(),
		slog.String("plan", plan.Name()), slog.String("outcome", denied), slog.String("list", "deny"))
	a.errors.Respond(w, r, err)
}

// markAllowed puts the rest of the request under the limits that refuse nothing.
func markAllowed(r *http.Request, info *requestInfo) {
	info.allowed = true
	middleware.SetLogAttrs(r.Context(), slog.String("list", "allow"))
}

// unlessAllowed returns limit, or shadow for requests that are marked as allowed.
func unlessAllowed(limit, shadow middleware.Middleware) middleware.Middleware {
	return func(next http.Handler) http.Handler {
		enforced, reported := limit(next), shadow(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if requestInfoOf(r.Context()).allowed {
				reported.ServeHTTP(w, r)
				return
			}
			enforced.ServeHTTP(w, r)
		})
	}
}
