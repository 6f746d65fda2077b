package bearer

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// Reasons why there is no token, for [Options.Observe]. They never contain a part of the
// field's value.
var (
	errRepeated  = errors.New("bearer: more than one Authorization line")
	errMalformed = errors.New("bearer: Authorization is not Bearer followed by spaces and one b64token")
	errTooLong   = fmt.Errorf("bearer: token has more than %d bytes", maxToken)
)

// maxToken is the largest length of a token in bytes. A JWT with many groups or roles has
// 10,000 and more, and nginx and Apache accept 8 KiB in one field by default. It bounds the
// work of verify; net/http bounds the whole header ([http.Server.MaxHeaderBytes]).
const maxToken = 16 << 10

// credentials reads the lines of the Authorization field. If the outcome is
// Authenticated, there is a token of the right form, which has yet to be
// verified. The reason is set if the outcome is Repeated or Invalid.
//
//	credentials = "Bearer" 1*SP b64token                          ; RFC 6750 section 2.1
//	b64token    = 1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"="
//
// The scheme is case-insensitive (RFC 9110 section 11.1). An absent or empty
// field, a scheme other than Bearer, and Bearer alone count as no token.
func credentials(lines []string) (token string, outcome Outcome, reason error) {
	switch len(lines) {
	case 0:
		return "", Missing, nil
	case 1:
	default:
		return "", Repeated, errRepeated // the field is not a list (RFC 9110 section 5.3)
	}
	// White space around a field value is not part of it (RFC 9110 section 5.5), but
	// net/http does not remove it in every version of HTTP.
	value := strings.Trim(lines[0], " \t")
	const scheme = "Bearer"
	if len(value) < len(scheme) || value[:len(scheme)] != scheme && !strings.EqualFold(value[:len(scheme)], scheme) {
		return "", Missing, nil
	}
	rest := value[len(scheme):]
	switch {
	case rest == "":
		return "", Missing, nil
	case isTokenChar(rest[0]):
		return "", Missing, nil // another scheme with a name that begins with Bearer
	case rest[0] != ' ':
		return "", Invalid, errMalformed
	}
	token = strings.TrimLeft(rest, " ")
	if len(token) > maxToken {
		return "", Invalid, fmt.Errorf("%w: %d", errTooLong, len(token))
	}
	if !isB64Token(token) {
		return "", Invalid, errMalformed
	}
	return token, Authenticated, nil
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

// inB64Token says which bytes can stand before the padding of a b64token.
var inB64Token = func() (in [256]bool) {
	for c := range in {
		in[c] = isAlphanumeric(byte(c)) || strings.IndexByte("-._~+/", byte(c)) >= 0
	}
	return in
}()

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// checkText returns an error, which continues the name of the text, unless text can
// stand between the quotation marks of an auth-param without escapes:
// %x20-21 / %x23-5B / %x5D-7E, at least once.
func checkText(text string) error {
	if text == "" {
		return errors.New("must not be empty")
	}
	for _, c := range []byte(text) {
		if c < 0x20 || c > 0x7e || c == '"' || c == '\\' {
			return fmt.Errorf("must be printable ASCII without \" and \\, got %q", text)
		}
	}
	return nil
}

// checkMetadata returns an error unless text is empty, or an absolute URL that can stand between
// the quotation marks of an auth-param: of https, or of http on loopback.
func checkMetadata(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || checkText(text) != nil || strings.Contains(text, " ") || u.Hostname() == "" {
		return fmt.Errorf("must be an absolute URL, got %q", text)
	}
	addr, _ := netip.ParseAddr(u.Hostname())
	if loopback := addr.IsLoopback() || u.Hostname() == "localhost"; u.Scheme != "https" && (u.Scheme != "http" || !loopback) {
		return fmt.Errorf("must be an https URL, got %q", text)
	}
	return nil
}
