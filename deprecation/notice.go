package deprecation

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
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

// FromResponse reads the notice of a response, of which it needs the Header. It returns true if
// there is a Deprecation or a Sunset field. If one of them is malformed or repeated, it also
// returns an error, and the notice has the rest. Deprecation must be a Structured Field Date: the
// values of earlier drafts, "true" and an HTTP-date, are errors. Sunset may be an HTTP-date in any
// of the three forms of RFC 9110 section 5.6.7. At most 16 KiB of Link fields are read.
//
// Targets of links are resolved against the URL of the request, if resp has one. The user and the
// password of that URL are left out, since targets are written into logs (RFC 9110 section 4.2.4).
// A target such as "#v2" keeps the query of the request, which may hold secrets (RFC 3986 section
// 5.2.2).
func FromResponse(resp *http.Response) (n Notice, ok bool, err error) {
	n, ok, err = fromHeader(resp.Header)
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

// fromHeader leaves the targets of links as they were sent.
func fromHeader(h http.Header) (Notice, bool, error) {
	var n Notice
	deprecation, sunset := h.Values("Deprecation"), h.Values("Sunset")
	if len(deprecation) == 0 && len(sunset) == 0 {
		return Notice{}, false, nil
	}
	var deprecationErr, sunsetErr error
	n.Since, deprecationErr = single("Deprecation", deprecation, parseDeprecation)
	n.Sunset, sunsetErr = single("Sunset", sunset, parseSunset)
	for _, l := range parseLinks(h.Values("Link")) {
		if l.parameters["anchor"] != "" {
			continue // is about another resource
		}
		for rel := range strings.FieldsSeq(strings.ToLower(l.parameters["rel"])) {
			switch rel {
			case relDeprecation:
				n.Documentation = cmp.Or(n.Documentation, l.target)
			case relSunset:
				n.SunsetInfo = cmp.Or(n.SunsetInfo, l.target)
			case relSuccessor:
				n.Successor = cmp.Or(n.Successor, l.target)
			}
		}
	}
	return n, true, errors.Join(deprecationErr, sunsetErr)
}

// single parses a field that may have one value, on one line.
func single(name string, values []string, parse func(string) (time.Time, error)) (time.Time, error) {
	switch len(values) {
	case 0:
		return time.Time{}, nil
	case 1:
		return parse(values[0])
	default:
		return time.Time{}, fmt.Errorf("deprecation: %s is repeated: it must be sent once", name)
	}
}

// parseDeprecation reads a Structured Field Date (RFC 9651 section 3.3.7): "@" and an integer
// of at most 15 digits. No parameters are defined, and those that follow are ignored.
func parseDeprecation(value string) (time.Time, error) {
	item, _, _ := strings.Cut(value, ";")
	digits, ok := strings.CutPrefix(strings.Trim(item, " "), "@")
	seconds, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || len(strings.TrimPrefix(digits, "-")) > 15 {
		return time.Time{}, fmt.Errorf(`deprecation: Deprecation must be "@" and Unix seconds, got %.40q`, value)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// parseSunset reads an HTTP-date. The name of the day need not match: that in the example of
// RFC 8594 does not. Of the three forms, only the obsolete one of RFC 850 has hyphens, and a
// year of two digits: the last such year that is less than 50 years ahead (RFC 9110 section
// 5.6.7).
func parseSunset(value string) (time.Time, error) {
	date := strings.Trim(value, " \t")
	t, err := http.ParseTime(date)
	obsolete := strings.Contains(date, "-")
	if later := t.UTC().AddDate(100, 0, 0); obsolete && later.Before(time.Now().AddDate(50, 0, 0)) {
		t = later
	}
	if err != nil || obsolete && !strings.HasSuffix(date, " GMT") {
		return time.Time{}, fmt.Errorf("deprecation: Sunset must be an HTTP-date in GMT, got %.40q", value)
	}
	return t.UTC(), nil
}

// maxLinkBytes bounds the Link fields of a response, which another party wrote.
const maxLinkBytes = 16 << 10

// A link is one link of a Link field (RFC 8288 section 3).
type link struct {
	target     string            // a URI-Reference
	parameters map[string]string // by their names in lower case
}

// parseLinks reads Link fields as RFC 8288 Appendix B.2 defines it: commas and semicolons
// inside <> and inside quotes belong to the target or the value. The rest of a field after a
// malformed link is dropped.
func parseLinks(fields []string) (links []link) {
	total := 0
	for _, field := range fields {
		if total += len(field); total > maxLinkBytes {
			break
		}
		p := linkParser{field}
		for l, ok := p.next(); ok; l, ok = p.next() {
			links = append(links, l)
		}
	}
	return links
}

// linkParser holds what is left of a field.
type linkParser struct{ rest string }

// next reads the next link. It returns false at the end and at anything else.
func (p *linkParser) next() (link, bool) {
	p.skip(" \t,")
	if !p.take('<') {
		return link{}, false
	}
	target, rest, ok := strings.Cut(p.rest, ">")
	if !ok {
		return link{}, false
	}
	p.rest = rest
	l := link{strings.Trim(target, " \t"), make(map[string]string)}
	for p.skip(" \t"); p.take(';'); p.skip(" \t") {
		name, value := p.parameter()
		// Of a repeated parameter the first counts (RFC 8288 section 3.4.1).
		if _, repeated := l.parameters[name]; !repeated {
			l.parameters[name] = value
		}
	}
	_, p.rest, _ = strings.Cut(p.rest, ",") // what is left before the comma is malformed
	return l, true
}

// parameter reads OWS [ link-param ].
func (p *linkParser) parameter() (name, value string) {
	p.skip(" \t")
	name = strings.ToLower(p.until(" \t=;,"))
	p.skip(" \t")
	if !p.take('=') {
		return name, ""
	}
	p.skip(" \t")
	if p.take('"') {
		return name, p.quoted()
	}
	return name, p.until(" \t;,")
}

func (p *linkParser) skip(set string) { p.rest = strings.TrimLeft(p.rest, set) }

func (p *linkParser) take(c byte) bool {
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *linkParser) until(set string) string {
	end := strings.IndexAny(p.rest, set)
	if end < 0 {
		end = len(p.rest)
	}
	s := p.rest[:end]
	p.rest = p.rest[end:]
	return s
}

// quoted reads a quoted string after its opening quote. Without a closing quote it
// extends to the end of the field.
func (p *linkParser) quoted() string {
	var b strings.Builder
	for i := 0; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == '"':
			p.rest = p.rest[i+1:]
			return b.String()
		case c == '\\' && i+1 < len(p.rest):
			i++
			b.WriteByte(p.rest[i])
		default:
			b.WriteByte(c)
		}
	}
	p.rest = ""
	return b.String()
}
