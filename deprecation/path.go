package deprecation

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// OnPath returns a middleware that sends the requests for one path through m, and
// all others past it. The fields of a declaration belong to a resource (RFC 9745
// section 2.2), and so to every answer for its path: also to a 401, 405 or 429
// that is given before a ServeMux has matched the path.
//
// The pattern is that of a ServeMux without method and host: literal segments and
// wildcards for a whole segment, "/v1/pets/{petId}". Like a ServeMux it looks at
// the decoded segments of the path. Methods are not told apart. OnPath panics on
// another pattern, as ServeMux.Handle does.
func OnPath(pattern string, m func(http.Handler) http.Handler) func(http.Handler) http.Handler {
	p, err := newPathPattern(pattern)
	if err != nil {
		panic(err)
	}
	return func(next http.Handler) http.Handler {
		inside := m(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if p.match(r.URL.EscapedPath()) {
				inside.ServeHTTP(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// pathPattern holds the segments of a pattern; "" stands for any segment.
type pathPattern []string

func newPathPattern(pattern string) (pathPattern, error) {
	rest, ok := strings.CutPrefix(pattern, "/")
	if !ok {
		return nil, fmt.Errorf("deprecation: pattern %q: does not begin with a slash", pattern)
	}
	segments := strings.Split(rest, "/")
	for i, s := range segments {
		name, wildcard := strings.CutPrefix(s, "{")
		if wildcard {
			name, wildcard = strings.CutSuffix(name, "}")
		}
		switch {
		case wildcard && name != "" && !strings.ContainsAny(name, "{}.$"):
			segments[i] = ""
		case s == "":
			return nil, fmt.Errorf("deprecation: pattern %q: has an empty segment", pattern)
		case strings.ContainsAny(s, "{}"):
			return nil, fmt.Errorf("deprecation: pattern %q: %q is neither a literal nor a wildcard for one segment", pattern, s)
		default:
			literal, err := url.PathUnescape(s)
			if err != nil {
				return nil, fmt.Errorf("deprecation: pattern %q: %w", pattern, err)
			}
			segments[i] = literal
		}
	}
	return segments, nil
}

// match splits the escaped path, since a segment may hold an escaped slash.
func (p pathPattern) match(path string) bool {
	rest, ok := strings.CutPrefix(path, "/")
	if !ok {
		return false
	}
	for i, want := range p {
		segment, after, more := strings.Cut(rest, "/")
		if more != (i < len(p)-1) || segment == "" || segment == "." || segment == ".." {
			return false // a ServeMux redirects to the clean path
		}
		if want != "" && segment != want && !escapes(segment, want) {
			return false
		}
		rest = after
	}
	return true
}

// escapes tells whether segment is literal with some of it percent-encoded.
func escapes(segment, literal string) bool {
	if !strings.Contains(segment, "%") {
		return false
	}
	s, err := url.PathUnescape(segment)
	return err == nil && s == literal
}
