package apierror

import "strings"

// maxAccept is how many bytes of Accept are read. Browsers send about 150. A client
// that sends more than maxAccept gets the default.
const maxAccept = 4 << 10

// prefersProblem reports whether a client that sent these Accept field lines
// prefers application/problem+json to application/json. The most specific range
// that matches a media type gives its quality, at any position; of equally
// specific ones the highest counts; without a match the quality is 0 (RFC 9110 sections 12.4.2 and
// 12.5.1). A malformed member is skipped, and the others count. The time is
// linear in the length, and at most maxAccept bytes are read.
//
//	Accept        = #( media-range [ weight ] )
//	media-range   = ( "*/*" / ( type "/" "*" ) / ( type "/" subtype ) ) parameters
//	parameters    = *( OWS ";" OWS [ parameter ] )
//	parameter     = token "=" ( token / quoted-string )
//	weight        = OWS ";" OWS "q=" qvalue
//	qvalue        = ( "0" [ "." 0*3DIGIT ] ) / ( "1" [ "." 0*3("0") ] )
//	quoted-string = DQUOTE *( qdtext / quoted-pair ) DQUOTE
//	quoted-pair   = "\" ( HTAB / SP / VCHAR / obs-text )
func prefersProblem(lines []string) bool {
	total := 0
	for _, line := range lines {
		if total += len(line) + 1; total > maxAccept {
			return false
		}
	}
	var envelope, problem preference
	for _, line := range lines {
		for line != "" {
			var member string
			member, line = cutMember(line)
			if m, ok := parseMediaRange(member); ok {
				envelope.consider(m, "json")
				problem.consider(m, "problem+json")
			}
		}
	}
	return problem.quality > envelope.quality
}

// preference is the quality of one media type by the ranges read so far.
type preference struct {
	specificity int // of the range that decides, 0 if none matched
	quality     int // in thousandths
}

func (p *preference) consider(m mediaRange, subtype string) {
	s := m.specificity(subtype)
	if s > p.specificity || s > 0 && s == p.specificity && m.quality > p.quality {
		*p = preference{s, m.quality}
	}
}

type mediaRange struct {
	typ, subtype string
	quality      int  // in thousandths
	foreign      bool // has a parameter that neither media type here has
}

// specificity returns how precisely m matches application/subtype: 0 is not at
// all, 3 by its name.
func (m mediaRange) specificity(subtype string) int {
	switch {
	case m.foreign:
		return 0
	case m.typ == "*":
		return 1
	case !strings.EqualFold(m.typ, "application"):
		return 0
	case m.subtype == "*":
		return 2
	case strings.EqualFold(m.subtype, subtype):
		return 3
	default:
		return 0
	}
}

// cutMember splits s after the first comma that is not in a quoted string.
func cutMember(s string) (member, rest string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++ // a quoted-pair
		case c == ',' && !quoted:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

func parseMediaRange(s string) (m mediaRange, ok bool) {
	m.quality = 1000
	m.typ, s = cutToken(trimOWS(s))
	if m.typ == "" || s == "" || s[0] != '/' {
		return m, false
	}
	m.subtype, s = cutToken(s[1:])
	if m.subtype == "" || m.typ == "*" && m.subtype != "*" {
		return m, false
	}
	weighed := false
	for s = trimOWS(s); s != ""; s = trimOWS(s) {
		if s[0] != ';' {
			return m, false
		}
		if s = trimOWS(s[1:]); s == "" || s[0] == ';' {
			continue
		}
		var name, value string
		if name, value, s, ok = cutParameter(s); !ok {
			return m, false
		}
		switch {
		case strings.EqualFold(name, "q"): // in any position
			if m.quality, ok = parseQuality(value); !ok || weighed {
				return m, false
			}
			weighed = true
		case strings.EqualFold(name, "charset") && strings.EqualFold(value, "utf-8"):
			// Clients add it, and JSON is always UTF-8 (RFC 8259 section 8.1).
		default:
			m.foreign = true
		}
	}
	return m, true
}

// cutParameter reads one parameter from the start of s.
func cutParameter(s string) (name, value, rest string, ok bool) {
	name, s = cutToken(s)
	if name == "" || s == "" || s[0] != '=' {
		return "", "", "", false
	}
	if s = s[1:]; s != "" && s[0] == '"' {
		value, rest, ok = cutQuoted(s)
		return name, value, rest, ok
	}
	value, rest = cutToken(s)
	return name, value, rest, value != ""
}

// cutQuoted reads the quoted-string that s starts with. It does not look for
// control characters: no parameter that counts has one in its value.
func cutQuoted(s string) (value, rest string, ok bool) {
	var unescaped []byte // nil while there was no quoted-pair
	from := 1            // start of what unescaped lacks
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			if unescaped == nil {
				return s[1:i], s[i+1:], true
			}
			return string(append(unescaped, s[from:i]...)), s[i+1:], true
		case c == '\\':
			unescaped = append(unescaped, s[from:i]...)
			i++
			from = i
			if i == len(s) {
				return "", "", false
			}
		}
	}
	return "", "", false
}

// parseQuality returns a qvalue in thousandths.
func parseQuality(s string) (quality int, ok bool) {
	whole, fraction, _ := strings.Cut(s, ".")
	if whole != "0" && whole != "1" || len(fraction) > 3 {
		return 0, false
	}
	quality = 1000 * int(whole[0]-'0')
	unit := 100
	for i := range len(fraction) {
		c := fraction[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		quality += unit * int(c-'0')
		unit /= 10
	}
	return quality, quality <= 1000
}

// cutToken reads the longest token, which may be empty, from the start of s
// (RFC 9110 section 5.6.2).
func cutToken(s string) (token, rest string) {
	i := 0
	for i < len(s) && isTokenChar(s[i]) {
		i++
	}
	return s[:i], s[i:]
}

func isTokenChar(c byte) bool {
	switch c {
	case '!', '#', '$', '%', '&', '\'', '*', '+', '-', '.', '^', '_', '`', '|', '~':
		return true
	}
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// trimOWS drops optional white space from the start of s.
func trimOWS(s string) string {
	return strings.TrimLeft(s, " \t")
}
