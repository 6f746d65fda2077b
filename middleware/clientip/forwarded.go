package clientip

import (
	"net/netip"
	"strings"
)

// lastForwarded reads the last element of a Forwarded line (RFC 7239 section 4).
//
//	Forwarded         = 1#forwarded-element
//	forwarded-element = [ forwarded-pair ] *( ";" [ forwarded-pair ] )
//	forwarded-pair    = token "=" ( token / quoted-string )
//
// It reads from the right, like the list as a whole: a client that sends an opening
// quotation mark alone cannot turn the text that its proxy adds into a part of a
// quoted string. An element with a backslash is refused. No address needs one, and
// only with it could a quotation mark be a part of a quoted string.
func lastForwarded(line string) (entry, rest string, more bool, addr netip.Addr, ok bool) {
	quoted := false
	for i := len(line) - 1; i >= 0; i-- {
		switch c := line[i]; {
		case c == '\\':
			return line, "", false, netip.Addr{}, false
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			entry = line[i+1:]
			addr, ok = parseElement(trimOWS(entry))
			return entry, line[:i], true, addr, ok
		}
	}
	addr, ok = parseElement(trimOWS(line)) // not ok if a quoted string has no end
	return line, "", false, addr, ok
}

// parseElement returns the address in the for parameter of an element without
// backslashes. It is not ok if any pair is malformed, or there is not exactly
// one for parameter with an address.
func parseElement(s string) (addr netip.Addr, ok bool) {
	found := false
	for more := true; more; {
		var name, value string
		if strings.HasPrefix(s, ";") || s == "" { // no pair
			_, s, more = strings.Cut(s, ";")
			continue
		}
		if name, s, ok = strings.Cut(s, "="); !ok || !isFieldName(name) {
			return netip.Addr{}, false
		}
		if value, s, ok = cutValue(s); !ok {
			return netip.Addr{}, false
		}
		if strings.EqualFold(name, "for") {
			if found {
				return netip.Addr{}, false // at most once (RFC 7239 section 4)
			}
			found = true
			if addr, ok = parseNode(value); !ok {
				return netip.Addr{}, false
			}
		}
		if s, more = strings.CutPrefix(s, ";"); !more && s != "" {
			return netip.Addr{}, false
		}
	}
	return addr, found
}

// cutValue reads a token or a quoted string from the start of s.
func cutValue(s string) (value, rest string, ok bool) {
	if quoted, isQuoted := strings.CutPrefix(s, `"`); isQuoted {
		value, rest, ok = strings.Cut(quoted, `"`)
		return value, rest, ok && isQuotedText(value)
	}
	end := strings.IndexByte(s, ';')
	if end < 0 {
		end = len(s)
	}
	return s[:end], s[end:], isFieldName(s[:end])
}

// isQuotedText reports whether s has no control characters but HTAB (RFC 9110
// section 5.6.4).
func isQuotedText(s string) bool {
	for _, c := range []byte(s) {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// parseNode reads the address of a node (RFC 7239 section 6). The names "unknown"
// and "_hidden" are not addresses.
//
//	node      = nodename [ ":" node-port ]
//	nodename  = IPv4address / "[" IPv6address "]" / "unknown" / obfnode
//	node-port = 1*5DIGIT / "_" 1*( ALPHA / DIGIT / "." / "_" / "-" )
func parseNode(s string) (netip.Addr, bool) {
	if s == "" || s[0] != '[' && strings.Count(s, ":") > 1 || strings.Contains(s, "%") {
		return netip.Addr{}, false // IPv6 without brackets, or with a zone
	}
	if name, port, found := strings.Cut(s, ":_"); found {
		bare := strings.HasSuffix(name, "]") || !strings.Contains(name, ":")
		if !bare || !isFieldName(port) || strings.ContainsAny(port, "!#$&'*+^`|~") {
			return netip.Addr{}, false
		}
		s = name
	}
	return parseAddr(s)
}
