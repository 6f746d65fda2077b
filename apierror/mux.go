package apierror

import (
	"net/http"
	"path"
	"strings"
)

var (
	notFound         = New(http.StatusNotFound, "not_found", "There is nothing at this path.")
	methodNotAllowed = New(http.StatusMethodNotAllowed, "method_not_allowed", "This method is not supported here. The Allow header lists the methods that are.")
)

// Mux returns a handler that serves what is registered on mux, and answers in
// the envelope what mux would answer itself in plain text or HTML:
//
//   - 404 not_found if no pattern matches the path, and for targets that no pattern
//     could match, as in OPTIONS * or CONNECT host:port.
//   - 405 method_not_allowed with Allow (RFC 9110 section 15.5.6) if patterns
//     match the path but not the method. Allow lists HEAD with GET.
//   - 404 not_found where mux redirects. Paths are exact: //v1/pets and
//     /v1/./pets are not /v1/pets (of CONNECT, nor is /v1/%2e/pets), and /tree is
//     not /tree/. Where a redirect is wanted, register an [http.RedirectHandler]
//     for the path.
//
// Patterns with a host work, and routes may be added to mux while it serves. A
// matched request is served by mux.ServeHTTP, so that the path values are set,
// and so is r.Pattern, on the same request that outer handlers hold.
func (rs *Responder) Mux(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The route is looked up here and once more by mux.ServeHTTP. That and the
		// check for redirects cost about 200 ns, and a small allocation if the
		// pattern has wildcards (BenchmarkMux). The ways around it cost more: only
		// ServeMux can set path values by position, and a ResponseWriter that
		// swallows the answers of mux would be in the way of every handler, where
		// it hides net/http's own writer from http.MaxBytesReader.
		if r.RequestURI == "*" {
			rs.Respond(w, r, notFound)
			return
		}
		switch h, pattern := mux.Handler(r); {
		case pattern == "":
			if allow := allowed(mux, r, h); allow != "" {
				w.Header().Set("Allow", allow)
				rs.Respond(w, r, methodNotAllowed)
				return
			}
			rs.Respond(w, r, notFound)
		case redirects(r, pattern):
			rs.Respond(w, r, notFound)
		default:
			mux.ServeHTTP(w, r)
		}
	})
}

// redirects reports whether ServeMux, having found pattern for r, redirects r
// instead of serving it.
func redirects(r *http.Request, pattern string) bool {
	escaped := r.URL.EscapedPath()
	exact := escaped
	if r.Method == http.MethodConnect {
		exact = r.URL.Path // whose redirect from /tree to /tree/ cleans the decoded path
	}
	if !isClean(exact) {
		return true
	}
	// The redirect from /tree to /tree/ comes with the pattern of /tree/. It is
	// recognised by the number of segments: the path has one less than the
	// pattern, and no pattern matches a path with fewer segments than its own.
	// There is no slash in a method, a host or the name of a wildcard.
	return strings.Count(escaped, "/") < strings.Count(pattern, "/")
}

// isClean reports whether ServeMux takes the path p as it is: it starts
// with a slash and has no empty segment but the last, nor "." or "..".
func isClean(p string) bool {
	if p == "" || p[0] != '/' {
		return false
	}
	clean := path.Clean(p)
	return p == clean || len(clean) > 1 && len(p) == len(clean)+1 && p[len(p)-1] == '/'
}

// allowed returns the methods that mux serves for r's path, as the value of
// Allow, or "" if it serves none. The handler h is what mux has for r, for which
// it found no pattern.
func allowed(mux *http.ServeMux, r *http.Request, h http.Handler) string {
	// Only the 405 handler of ServeMux knows them, and it writes them to a response.
	answer := probe{header: make(http.Header)}
	h.ServeHTTP(&answer, r)
	if answer.status != http.StatusMethodNotAllowed {
		return ""
	}
	// For /tree ServeMux also counts the methods of /tree/, to which it would
	// redirect. Here that is another resource.
	var methods []string
	for method := range strings.SplitSeq(answer.header.Get("Allow"), ", ") {
		other := r.WithContext(r.Context()) // a copy
		other.Method = method
		if _, pattern := mux.Handler(other); pattern != "" && !redirects(other, pattern) {
			methods = append(methods, method)
		}
	}
	return strings.Join(methods, ", ")
}

// probe is a ResponseWriter that keeps the header section and drops the body.
// Only answers of ServeMux itself are written to it.
type probe struct {
	header http.Header
	status int
}

func (p *probe) Header() http.Header         { return p.header }
func (p *probe) WriteHeader(status int)      { p.status = status }
func (p *probe) Write(b []byte) (int, error) { return len(b), nil }
