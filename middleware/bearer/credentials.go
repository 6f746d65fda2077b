package bearer

import "strings"

// credentials reads the lines of the Authorization field. The outcome is
// Authenticated if there is a token of the right form, which is still to be
// verified.
//
//	credentials = "Bearer" 1*SP b64token                          ; RFC 6750 section 2.1
//	b64token    = 1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"="
//
// The scheme is case-insensitive (RFC 9110 section 11.1). Nothing at all, a
// scheme other than Bearer, and Bearer alone are no token rather than a bad one.
func credentials(lines []string, maxToken int) (token string, outcome Outcome) {
	switch len(lines) {
	case 0:
		return "", Missing
	case 1:
	default:
		return "", Invalid // the field is no list (RFC 9110 section 5.3)
	}
	// White space around a field value is no part of it (RFC 9110 section 5.5),
	// and is not in all versions of HTTP removed before it comes here.
	value := strings.Trim(lines[0], " \t")
	const scheme = "Bearer"
	if len(value) < len(scheme) || value[:len(scheme)] != scheme && !strings.EqualFold(value[:len(scheme)], scheme) {
		return "", Missing
	}
	rest := value[len(scheme):]
	switch {
	case rest == "":
		return "", Missing
	case isTokenChar(rest[0]):
		return "", Missing // another scheme, whose name begins in the same way
	case rest[0] != ' ':
		return "", Invalid
	}
	token = strings.TrimLeft(rest, " ")
	if len(token) > maxToken || !isB64Token(token) {
		return "", Invalid
	}
	return token, Authenticated
}

// isTokenChar reports whether c can stand in the name of a scheme (RFC 9110
// sections 5.6.2 and 11.1).
func isTokenChar(c byte) bool {
	return isAlphanumeric(c) || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

func isB64Token(s string) bool {
	s = strings.TrimRight(s, "=")
	for i := range len(s) {
		if !inB64Token[s[i]] {
			return false
		}
	}
	return s != ""
}

// inB64Token tells of each octet whether it can stand before the padding of a
// b64token.
var inB64Token = func() (in [256]bool) {
	for c := range in {
		in[c] = isAlphanumeric(byte(c)) || strings.IndexByte("-._~+/", byte(c)) >= 0
	}
	return in
}()

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
