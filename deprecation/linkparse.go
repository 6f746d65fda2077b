package deprecation

import "strings"

// Limits on the Link fields of a response, which another party wrote.
const (
	maxLinks     = 100
	maxLinkBytes = 16 << 10
)

// ParseLinks reads the Link fields of a message, h["Link"] or
// h.Values("Link"), as RFC 8288 Appendix B.2 defines it: commas and semicolons inside
// <> and inside quotes belong to the target or the value, a field may have
// several links and a message several fields, and the first rel of a link counts.
// The rest of a field after a malformed part is dropped. A link without a rel is
// omitted. At most 100 links from 16 KiB of fields are read.
func ParseLinks(fields []string) []Link {
	var links []Link
	total := 0
	for _, field := range fields {
		if total += len(field); total > maxLinkBytes {
			break
		}
		for p := (linkParser{field}); len(links) < maxLinks; {
			l, ok := p.next()
			if !ok {
				break
			}
			if l.Rel != "" {
				links = append(links, l)
			}
		}
	}
	return links
}

// linkParser holds what is left of a field.
type linkParser struct{ rest string }

// next reads the next link. It returns false at the end and at anything else.
func (p *linkParser) next() (Link, bool) {
	p.skip(" \t,")
	if !p.take('<') {
		return Link{}, false
	}
	target, rest, ok := strings.Cut(p.rest, ">")
	if !ok {
		return Link{}, false
	}
	p.rest = rest
	l := Link{Target: strings.Trim(target, " \t")}
	p.parameters(&l)
	// The text left before the comma is malformed.
	if comma := strings.IndexByte(p.rest, ','); comma >= 0 {
		p.rest = p.rest[comma+1:]
	} else {
		p.rest = ""
	}
	return l, true
}

// parameters reads the parameters of a link: *( OWS ";" OWS [ link-param ] ).
func (p *linkParser) parameters(l *Link) {
	rel, typ, anchor := false, false, false
	for p.skip(" \t"); p.take(';'); p.skip(" \t") {
		p.skip(" \t")
		name := lowerASCII(p.until(" \t=;,"))
		p.skip(" \t")
		value := ""
		if p.take('=') {
			p.skip(" \t")
			if p.take('"') {
				value = p.quoted()
			} else {
				value = p.until(" \t;,")
			}
		}
		// Of a repeated parameter the first counts (RFC 8288 section 3.4.1).
		switch name {
		case "rel":
			set(&l.Rel, &rel, value)
		case "type":
			set(&l.Type, &typ, value)
		case "anchor":
			set(&l.Anchor, &anchor, value)
		}
	}
}

func set(to *string, done *bool, value string) {
	if !*done {
		*to, *done = value, true
	}
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
