package deprecation

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/internal/response"
)

// setHeaders sets the fields in h, each once however often it is called. It writes into
// the map itself, since Header.Set allocates a slice for each value.
func (d *Declaration) setHeaders(h http.Header, now time.Time) {
	if d.deprecationField != nil {
		h["Deprecation"] = d.deprecationField
	}
	switch {
	case d.isRemoved(now):
		delete(h, "Sunset")
	case d.sunsetField != nil:
		h["Sunset"] = d.sunsetField
	}
	if d.links != nil {
		d.links.EditHeader(h)
	}
}

// linkField is a Link value that responses must have.
type linkField struct{ value []string }

// EditHeader adds the value to Link unless it is there.
func (f *linkField) EditHeader(h http.Header) {
	switch lines := h["Link"]; {
	case len(lines) == 0:
		h["Link"] = f.value
	case !slices.Contains(lines, f.value[0]):
		h["Link"] = append(lines, f.value[0])
	}
}

// serve calls next, and adds the links again before the header is sent: a
// handler that calls Header().Set for a link of its own removes them.
func (d *Declaration) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	if d.links == nil {
		next.ServeHTTP(w, r)
		return
	}
	t := response.Edit(w, d.links)
	defer t.Finish() // also after a panic, which an outer handler may answer
	next.ServeHTTP(t, r)
}

// isRemoved reports whether the sunset has come.
func (d *Declaration) isRemoved(now time.Time) bool {
	return !d.sunset.IsZero() && !now.Before(d.sunset)
}

// Headers is a middleware that sets Deprecation, Sunset and Link on every response from
// further in, each once, and refuses nothing. From the sunset on there is no Sunset field:
// one in the past says nothing (RFC 8594 section 3). Links that a handler sets stay
// beside them: a declaration with links wraps the ResponseWriter, and the wrapper
// supports [http.ResponseController]. Place Headers before authentication and rate
// limiting, with [OnPath] to select the requests.
func (d *Declaration) Headers(next http.Handler) http.Handler {
	if d == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.setHeaders(w.Header(), d.now())
		d.serve(next, w, r)
	})
}

// Enforce is a middleware around the operation itself. It sets the headers on every
// response, reports the request to OnUse, and passes it to next until the sunset.
// From that instant on it answers 410 with the code operation_removed (RFC 9110
// section 15.5.11), and during a brownout the same with a Retry-After of whole
// seconds to its end.
//
// Registered at one route of a ServeMux, Enforce gets only requests with the method of
// that route; the mux answers other methods with 405, even after the sunset. Around the
// mux, with OnPath, it answers all methods of the path with 410, and OnUse gets them all.
func (d *Declaration) Enforce(next http.Handler) http.Handler {
	if d == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := d.now()
		h := w.Header()
		d.setHeaders(h, now)
		if d.onUse != nil {
			d.onUse(r)
		}
		if d.isRemoved(now) {
			d.errors.Respond(w, r, d.removed)
			return
		}
		if left := d.brownoutLeft(now); left > 0 {
			brownout := *d.brownout
			brownout.RetryAfter = left
			d.errors.Respond(w, r, &brownout)
			return
		}
		d.serve(next, w, r)
	})
}

// OnPath returns a middleware that sends the requests for one path through m, and all others
// past it. The headers of a declaration belong to a resource (RFC 9745 section 2.2), and so to
// every response for its path. That includes a 401, 405 or 429 that is given before a ServeMux
// has matched the path.
//
// The pattern is one of [http.ServeMux] without method and host, such as
// "/v1/pets/{petId}", "/v1/stores/" or "/v1/{$}". It matches the requests that a
// ServeMux with only this pattern would serve, whatever their method, and not
// those that it would redirect. OnPath panics on a pattern that ServeMux.Handle
// panics on, on one with a method or a host, and if m is nil.
func OnPath(pattern string, m func(http.Handler) http.Handler) func(http.Handler) http.Handler {
	switch {
	case !strings.HasPrefix(pattern, "/"):
		panic(fmt.Errorf("deprecation: OnPath: the pattern must begin with a slash, without a method or a host, got %q", pattern))
	case m == nil:
		panic(fmt.Errorf("deprecation: OnPath(%q): the middleware must not be nil", pattern))
	}
	matched := &struct{ http.Handler }{http.NotFoundHandler()} // known by its address
	mux := http.NewServeMux()
	mux.Handle(pattern, matched)
	// Most other paths are told by their slashes and their beginning. A mux takes longest to
	// find that nothing matches.
	slashes := strings.Count(pattern, "/")
	subtree := strings.HasSuffix(pattern, "/") || strings.HasSuffix(pattern, "...}")
	prefix, _, _ := strings.Cut(pattern, "{")
	if decoded, err := url.PathUnescape(prefix); err == nil {
		prefix = decoded
	}
	return func(next http.Handler) http.Handler {
		inside := m(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n := strings.Count(r.URL.EscapedPath(), "/")
			if strings.HasPrefix(r.URL.Path, prefix) && (n == slashes || n > slashes && subtree) {
				if h, _ := mux.Handler(r); h == http.Handler(matched) {
					inside.ServeHTTP(w, r)
					return
				}
			}
			next.ServeHTTP(w, r)
		})
	}
}
