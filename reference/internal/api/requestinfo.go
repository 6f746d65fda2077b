package api

import (
	"context"
	"net/http"
	"net/netip"
	"path"
	"strings"

	"github.com/animalstore/gatehouse/middleware/clientip"
)

// A route is the pattern that a request matches. Code that treats operations
// differently must use the route and never the path of the request, which has many
// spellings: /v1/%75sage is /v1/usage (RFC 3986 section 2.3).
type route struct {
	pattern string // the path pattern, such as "/v1/pets/{petId}"; "" if no pattern matches
	site    bool   // a file of the site, which needs no key
	usage   bool   // the operation getUsage

	static *staticRoute // nil: ServeMux serves the request
}

// routeOf returns the route of a request. HEAD has the route of GET.
func (a *api) routeOf(r *http.Request) route {
	if s := a.static.find(r); s != nil {
		return s.route
	}
	if p := r.URL.EscapedPath(); path.Clean(p) != p {
		return route{} // ServeMux would redirect, which is answered with 404
	}
	if _, pattern := a.service.Handler(r); pattern != "" {
		return route{pattern: pathOf(pattern), usage: pattern == usagePattern}
	}
	_, pattern := a.site.Handler(r)
	return route{pattern: pathOf(pattern), site: pattern != ""}
}

// pathOf cuts the method off a pattern.
func pathOf(pattern string) string {
	_, p, _ := strings.Cut(pattern, " ")
	return p
}

// requestInfo is what the middlewares share about one request. It is also the
// context of the request, which saves an allocation.
type requestInfo struct {
	context.Context
	route   route
	addr    netip.Addr
	network string // subject of the client without a key
	proxied error  // why network is that of a proxy; nil: it is that of the client
	allowed bool   // on the allow list; set before the limiter decides

	look      func() (*peeked, error) // waits for what is left, if the request is not charged
	peeked    *peeked                 // its answer; nil: the limiter failed
	undecided error                   // its error, so that the limiter is not asked again
}

type requestInfoKey struct{}

func (info *requestInfo) Value(key any) any {
	if _, ok := key.(requestInfoKey); ok {
		return info
	}
	return info.Context.Value(key)
}

// requestInfoOf returns what addInfo has added to a request.
func requestInfoOf(ctx context.Context) *requestInfo {
	info, _ := ctx.Value(requestInfoKey{}).(*requestInfo)
	return info
}

// addInfo is a middleware that adds the route and the network of a request, and marks
// clients in Config.Allow.Networks.
func (a *api) addInfo(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		addr, err := a.Client.Resolve(r)
		info := &requestInfo{Context: r.Context(), route: a.routeOf(r), addr: addr, network: clientip.NetworkSubject(addr), proxied: err}
		logInfo(r, info)
		r.Pattern = info.route.pattern // for handlers around the API; the mux sets it on the copy
		if a.allow.hasAddr(addr) {
			markAllowed(r, info)
		}
		next.ServeHTTP(w, r.WithContext(info))
	})
}
