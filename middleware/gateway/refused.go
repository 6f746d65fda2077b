package gateway

import (
	"io"
	"net/http"
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

// filterTrailers removes Alt-Svc, framing, and the trailers of the backend that would repeat
// or contradict a field of middlewares. Those that the backend has not announced are known
// only at the end of the body.
func (x *exchange) filterTrailers(resp *http.Response) {
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return
	}
	if len(resp.Trailer) == 0 && resp.ProtoMajor == 1 && resp.ContentLength >= 0 {
		return // no trailers can follow (RFC 9112 section 7.1.2)
	}
	t := &trailerFilter{ReadCloser: resp.Body, resp: resp, set: x.set}
	t.filter()
	resp.Body = t
}

type trailerFilter struct {
	io.ReadCloser
	resp *http.Response
	set  http.Header // of middlewares
}

func (t *trailerFilter) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if err == io.EOF {
		t.filter()
	}
	return n, err
}

func (t *trailerFilter) filter() {
	if len(t.resp.Trailer) == 0 {
		return
	}
	dropFraming(t.resp.Trailer)
	set := groupsOf(t.set)
	for name := range t.resp.Trailer {
		switch g := groupOf(name); {
		case g == shared:
		case g == hidden, g != alone && set[g], g == alone && t.set[name] != nil:
			delete(t.resp.Trailer, name)
		}
	}
}
