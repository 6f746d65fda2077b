package deprecation

import (
	"errors"
	"net/http"
	"net/url"
	"time"
)

// Notice is what a response says about the deprecation of its resource.
type Notice struct {
	Since  time.Time // instant of the deprecation, maybe in the future; zero if not sent
	Sunset time.Time // instant from which on it may be removed; zero if not sent

	// Targets of the first link with the relation deprecation, sunset and
	// successor-version; "" without such a link.
	Documentation string
	SunsetInfo    string
	Successor     string
}

// FromResponse reads the notice of a response. Targets of links are resolved
// against the URL of the request, if resp has one, without its user and password:
// a target is written into logs, and an http URL in a message must not have them (RFC
// 9110 section 4.2.4). A target such as "#v2" keeps the query of the request, which may
// hold secrets (RFC 3986 section 5.2.2). See FromHeader for the other results.
func FromResponse(resp *http.Response) (n Notice, ok bool, err error) {
	n, ok, err = FromHeader(resp.Header)
	if resp.Request == nil || resp.Request.URL == nil {
		return n, ok, err
	}
	base := *resp.Request.URL
	base.User = nil
	for _, target := range []*string{&n.Documentation, &n.SunsetInfo, &n.Successor} {
		if ref, parseErr := url.Parse(*target); *target != "" && parseErr == nil {
			*target = base.ResolveReference(ref).String()
		}
	}
	return n, ok, err
}

// FromHeader reads the notice in the header of a response, with the targets of
// links as they were sent. It returns true if there is a Deprecation or a Sunset
// field. If one of them is malformed or repeated, it also returns an error, and the
// notice has the rest.
func FromHeader(h http.Header) (Notice, bool, error) {
	var n Notice
	deprecation, sunset := h.Values("Deprecation"), h.Values("Sunset")
	if len(deprecation) == 0 && len(sunset) == 0 {
		return Notice{}, false, nil
	}
	var deprecationErr, sunsetErr error
	n.Since, deprecationErr = single(deprecation, ParseDeprecation, "deprecation: Deprecation is repeated: it must be sent once")
	n.Sunset, sunsetErr = single(sunset, ParseSunset, "deprecation: Sunset is repeated: it must be sent once")
	for _, l := range ParseLinks(h.Values("Link")) {
		if l.Anchor != "" {
			continue // is about another resource
		}
		n.Documentation = firstTarget(n.Documentation, l, relDeprecation)
		n.SunsetInfo = firstTarget(n.SunsetInfo, l, relSunset)
		n.Successor = firstTarget(n.Successor, l, relSuccessor)
	}
	return n, true, errors.Join(deprecationErr, sunsetErr)
}

// single parses a field that may have one value, on one line.
func single(values []string, parse func(string) (time.Time, error), repeated string) (time.Time, error) {
	switch len(values) {
	case 0:
		return time.Time{}, nil
	case 1:
		return parse(values[0])
	default:
		return time.Time{}, errors.New(repeated)
	}
}

func firstTarget(have string, l Link, rel string) string {
	if have == "" && l.Is(rel) {
		return l.Target
	}
	return have
}
