package gateway

import (
	"net/url"
	"strings"
)

// toPath leaves of u what a target in origin-form has (RFC 9112 section 3.2.1).
func toPath(u *url.URL) {
	u.Scheme, u.User, u.Host = "", nil, ""
	if !strings.HasPrefix(u.EscapedPath(), "/") { // http://pets.example, or http.StripPrefix
		u.Path = "/" + u.Path
		if u.RawPath != "" {
			u.RawPath = "/" + u.RawPath
		}
	}
}

// hasDotSegment reports whether a decoded path has a segment . or .., which the backend
// could resolve. Backends differ in what else separates segments, and in what a segment
// may have behind a semicolon.
func hasDotSegment(path string) bool {
	separator := func(r rune) bool { return r == '/' || r == '\\' }
	for segment := range strings.FieldsFuncSeq(path, separator) {
		switch name, _, _ := strings.Cut(segment, ";"); name {
		case ".", "..":
			return true
		}
	}
	return false
}

// carriesRequests reports whether one of the protocols in an Upgrade field carries
// further requests, which no middleware would see.
func carriesRequests(upgrade string) bool {
	for protocol := range strings.SplitSeq(upgrade, ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(protocol), "/")
		switch strings.ToLower(name) {
		case "h2c", "h2", "http", "tls":
			return true
		}
	}
	return false
}
