package api

import (
	"log/slog"
	"net/http"
	"net/netip"
	"slices"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/reference/internal/config"
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
		case a.deny.owners[p.Owner]:
			middleware.SetLogAttrs(r.Context(), slog.String("key", p.KeyID))
			a.refuse(w, r, p.Plan, errOwnerDenied)
			return
		case a.allow.owners[p.Owner]:
			markAllowed(r, requestInfoOf(r.Context()))
		}
		next.ServeHTTP(w, r)
	})
}

// refuse answers without asking the limiter, which may be another machine. The header
// fields show the plan with nothing used, because such requests are not counted.
func (a *api) refuse(w http.ResponseWriter, r *http.Request, plan *ratelimit.Plan, err error) {
	d := engine.Uncounted(plan, 1, a.Now())
	a.headers().Set(w.Header(), &d)
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

// An accessTable finds clients in a list of the settings. Lookups are fast with thousands
// of entries. A client behind a NAT64 translator also has the IPv4 address that
// clientip.Network returns.
type accessTable struct {
	networks map[netip.Prefix]bool
	lengths  []int // of the networks
	owners   map[string]bool
}

func newAccessTable(list config.AccessList) *accessTable {
	t := &accessTable{networks: make(map[netip.Prefix]bool), owners: make(map[string]bool)}
	for _, p := range list.Networks {
		t.networks[p] = true
		if !slices.Contains(t.lengths, p.Bits()) {
			t.lengths = append(t.lengths, p.Bits())
		}
	}
	for _, owner := range list.Owners {
		t.owners[owner] = true
	}
	return t
}

// hasAddr reports whether the address of a client is in one of the networks.
func (t *accessTable) hasAddr(addr netip.Addr) bool {
	if len(t.networks) == 0 {
		return false
	}
	addr = addr.Unmap().WithZone("")
	n := clientip.Network(addr).Addr() // IPv4, if that is behind a translator
	return t.contains(addr) || n.Is4() && n != addr && t.contains(n)
}

func (t *accessTable) contains(addr netip.Addr) bool {
	return slices.ContainsFunc(t.lengths, func(bits int) bool {
		p, err := addr.Prefix(bits) // an error: addr is shorter
		return err == nil && t.networks[p]
	})
}
