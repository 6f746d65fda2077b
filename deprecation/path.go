package deprecation

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// OnPath returns a middleware that sends the requests for one path through m, and
// all others past it. The headers of a declaration belong to a resource (RFC 9745
// section 2.2), and so to every response for its path: also to a 401, 405 or 429
// that is given before a ServeMux has matched the path.
//
// The pattern is that of an [http.ServeMux] without method and host, such as
// "/v1/pets/{petId}", "/v1/stores/" or "/v1/{$}". It matches the requests that a
// ServeMux with only this pattern would serve, whatever their method, and not
// those that it would redirect. OnPath panics on a pattern that ServeMux.Handle
// panics on, on one with a method or a host, and if m is nil.
func OnPath(pattern string, m func(http.Handler) http.Handler) func(http.Handler) http.Handler {
	p, err := newPathPattern(pattern)
	if err != nil {
		panic(err)
	}
	if m == nil {
		panic(fmt.Errorf("deprecation: OnPath(%q): the middleware must not be nil", pattern))
	}
	return func(next http.Handler) http.Handler {
		inside := m(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if p.match(r) {
				inside.ServeHTTP(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// pathPattern matches requests by asking a ServeMux that has only the pattern. The
// other fields reject most other paths first: a mux takes longest to find that
// nothing matches.
type pathPattern struct {
	prefix  string // every matching path begins with it, decoded
	slashes int    // every matching path has as many
	subtree bool   // or more, if this is set
	mux     *http.ServeMux
}

func newPathPattern(pattern string) (p *pathPattern, err error) {
	if !strings.HasPrefix(pattern, "/") {
		return nil, fmt.Errorf("deprecation: pattern must begin with a slash, without a method or a host, got %q", pattern)
	}
	defer func() {
		if v := recover(); v != nil {
			p, err = nil, fmt.Errorf("deprecation: %v", v)
		}
	}()
	p = &pathPattern{
		slashes: strings.Count(pattern, "/"),
		subtree: strings.HasSuffix(pattern, "/") || strings.HasSuffix(pattern, "...}"),
		mux:     http.NewServeMux(),
	}
	p.mux.Handle(pattern, matched)
	literal, _, _ := strings.Cut(pattern, "{")
	if p.prefix, err = url.PathUnescape(literal); err != nil {
		return nil, fmt.Errorf("deprecation: pattern %q: %w", pattern, err)
	}
	return p, nil
}

// match reports whether a mux with only the pattern would serve r.
func (p *pathPattern) match(r *http.Request) bool {
	if !strings.HasPrefix(r.URL.Path, p.prefix) {
		return false
	}
	n := strings.Count(r.URL.EscapedPath(), "/")
	if n < p.slashes || n > p.slashes && !p.subtree {
		return false
	}
	h, _ := p.mux.Handler(r)
	return h == http.Handler(matched)
}

// matched is what the mux finds for a request that it would serve, rather than
// redirect or answer with 404.
var matched = new(match)

type match struct{ _ byte } // not empty: its address must be its own

func (*match) ServeHTTP(http.ResponseWriter, *http.Request) {}
