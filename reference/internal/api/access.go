package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"sort"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/reference/internal/store"
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

// An AccessList names clients by their network and by the owner of their key. The zero
// value names none.
type AccessList struct {
	// Networks contain the addresses of clients, with or without a key. A client behind a
	// NAT64 translator also has the IPv4 address that clientip.Network returns.
	Networks []netip.Prefix

	// Owners are the owners of keys. A client is only taken for an owner if it sends a
	// valid key.
	Owners []string
}

// An accessTable finds clients in an AccessList. Both lookups are fast with thousands
// of entries.
type accessTable struct {
	networks []netip.Prefix // sorted, and no two overlap
	owners   map[string]bool
}

func newAccessTable(list AccessList) (*accessTable, error) {
	sorted := slices.Clone(list.Networks)
	slices.SortFunc(sorted, netip.Prefix.Compare)
	t := &accessTable{owners: make(map[string]bool, len(list.Owners))}
	for _, p := range sorted {
		if err := checkNetwork(p); err != nil {
			return nil, err
		}
		// Prefixes nest or are apart, and the wider of two that nest comes first.
		if n := len(t.networks); n == 0 || !t.networks[n-1].Overlaps(p) {
			t.networks = append(t.networks, p)
		}
	}
	for _, owner := range list.Owners {
		if owner == "" {
			return nil, errors.New("Owners must not contain an empty name")
		}
		t.owners[owner] = true
	}
	return t, nil
}

func checkNetwork(p netip.Prefix) error {
	switch {
	case !p.IsValid():
		return errors.New("Networks must not contain the zero prefix")
	case p.Addr().Is4In6():
		return fmt.Errorf("Networks must have IPv4 in the form of IPv4, got %v", p)
	case p != p.Masked():
		return fmt.Errorf("Networks must have no bits beyond their length: got %v, write %v", p, p.Masked())
	}
	return nil
}

// hasAddr reports whether the address of a client is in one of the networks.
func (t *accessTable) hasAddr(addr netip.Addr) bool {
	if len(t.networks) == 0 {
		return false
	}
	addr = addr.Unmap().WithZone("")
	if n := clientip.Network(addr).Addr(); n.Is4() && n != addr && t.contains(n) {
		return true
	}
	return t.contains(addr)
}

func (t *accessTable) contains(addr netip.Addr) bool {
	after := sort.Search(len(t.networks), func(i int) bool { return addr.Less(t.networks[i].Addr()) })
	return after > 0 && t.networks[after-1].Contains(addr)
}

func (t *accessTable) hasOwner(owner string) bool { return t.owners[owner] }

// keyStore finds stored keys with their plans, for package apikey.
type keyStore struct {
	keys store.KeyFinder
	plan func(name string, quotas []string) (*ratelimit.Plan, error)
}

func (s keyStore) Lookup(ctx context.Context, d apikey.Digest) (apikey.Record[apikey.Principal], error) {
	key, err := s.keys.KeyByDigest(ctx, d)
	if errors.Is(err, store.ErrNotFound) {
		return apikey.Record[apikey.Principal]{}, apikey.ErrUnknown
	}
	if err != nil {
		return apikey.Record[apikey.Principal]{}, err
	}
	plan, err := s.plan(key.Plan, key.Quotas)
	if err != nil {
		return apikey.Record[apikey.Principal]{}, fmt.Errorf("plan of key %s: %w", key.ID, err)
	}
	record := key.Record(plan)
	if record.Principal.Limits, err = key.LimitsPlan(); err != nil {
		return apikey.Record[apikey.Principal]{}, fmt.Errorf("limits of key %s: %w", key.ID, err)
	}
	return record, nil
}
