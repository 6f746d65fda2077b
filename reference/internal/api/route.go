package api

import (
	"context"
	"net/http"
	"path"
	"strings"

	"github.com/animalstore/gatehouse/middleware/clientip"
)

// A route is where the muxes send a request. Everything that treats operations
// differently goes by it and never by the path as sent, which has many spellings:
// /v1/%75sage is /v1/usage (RFC 3986 section 2.3).
type route struct {
	pattern string // the path pattern, such as "/v1/pets/{petId}"; "" if no pattern matches
	page    bool   // the request is for a page that needs no key
	usage   bool   // the request is for getUsage
}

// routeOf asks the muxes. HEAD has the route of GET.
func (a *api) routeOf(r *http.Request) route {
	if p := r.URL.EscapedPath(); path.Clean(p) != p {
		return route{} // ServeMux would redirect, which is answered with 404
	}
	if _, pattern := a.service.Handler(r); pattern != "" {
		return route{pattern: pathOf(pattern), usage: pattern == http.MethodGet+" "+usagePath}
	}
	_, pattern := a.site.Handler(r)
	return route{pattern: pathOf(pattern), page: pattern != ""}
}

// pathOf cuts the method off a pattern.
func pathOf(pattern string) string {
	_, p, _ := strings.Cut(pattern, " ")
	return p
}

// A visit is what the parts of the handler know about a request. It is the
// request's context, which saves an allocation.
type visit struct {
	context.Context
	route   route
	network string // subject that the client counts for without a key
	proxied error  // why that is the network of a proxy; nil if it is the client's
	notes   notes
}

type visitKey struct{}

func (v *visit) Value(key any) any {
	if _, ok := key.(visitKey); ok {
		return v
	}
	return v.Context.Value(key)
}

// visitOf returns the visit of a request that has passed enter.
func visitOf(ctx context.Context) *visit {
	v, _ := ctx.Value(visitKey{}).(*visit)
	return v
}

// enter is a middleware that looks up the route of a request and where it is from.
func (a *api) enter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		addr, err := a.Client.Resolve(r)
		v := &visit{Context: r.Context(), route: a.routeOf(r), network: clientip.NetworkSubject(addr), proxied: err}
		next.ServeHTTP(w, r.WithContext(v))
	})
}
