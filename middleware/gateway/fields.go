package gateway

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// A group is a set of fields that come from one side: from middlewares if they have set
// any of them, and otherwise from the backend.
type group uint8

const (
	alone  group = iota // the backend's field replaces that of middlewares
	shared              // both are sent
	hidden              // the backend's is dropped
	rates
	retirement
	origins
	requestID
	server
	transportSecurity
	groups
)

// groupOf takes a name in canonical form.
func groupOf(name string) group {
	switch name {
	case "Link", "Vary", "Set-Cookie", "Server-Timing":
		return shared
	case "Alt-Svc":
		return hidden
	case "Deprecation", "Sunset":
		return retirement
	case "X-Request-Id":
		return requestID
	case "Server":
		return server
	case "Strict-Transport-Security":
		return transportSecurity
	}
	for _, prefix := range [...]string{"X-Ratelimit-", "X-Rate-Limit-", "Ratelimit"} {
		if strings.HasPrefix(name, prefix) {
			return rates
		}
	}
	if strings.HasPrefix(name, "Access-Control-") {
		return origins
	}
	return alone
}

// groupsOf returns the groups that fields are of.
func groupsOf(fields http.Header) (of [groups]bool) {
	for name := range fields {
		of[groupOf(name)] = true
	}
	return of
}

// merge removes from ours, the fields that middlewares have set, and from theirs, those
// of the backend, what the client does not get.
func merge(ours, theirs http.Header) {
	set := groupsOf(ours)
	for name, lines := range theirs {
		switch g := groupOf(name); g {
		case alone:
			delete(ours, name)
		case hidden:
			delete(theirs, name)
		case shared:
			// A service behind the gateway may set the same Vary or Link.
			theirs[name] = slices.DeleteFunc(lines, func(l string) bool { return slices.Contains(ours[name], l) })
		default:
			if set[g] {
				delete(theirs, name)
			}
		}
	}
}

// dropFraming removes from an informational response or from trailers what is about one
// connection (RFC 9110 section 7.6.1), or about the framing and the content that only the
// header of a final response describes (section 6.5.1).
func dropFraming(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			h.Del(textproto.TrimString(name))
		}
	}
	for _, name := range [...]string{
		"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"Content-Encoding", "Content-Length", "Content-Range", "Content-Type", "Host",
	} {
		delete(h, name)
	}
}
