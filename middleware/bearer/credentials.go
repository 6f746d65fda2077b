package bearer

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/animalstore/gatehouse/apierror"
)

// Reasons why there is no token, for [Options.Observe]. They never contain a part of the
// field's value.
var (
	errRepeated  = errors.New("bearer: more than one Authorization line")
	errMalformed = errors.New("bearer: Authorization is not Bearer followed by spaces and one b64token")
	errTooLong   = errors.New("bearer: token exceeds Options.MaxToken")
)

// credentials reads the lines of the Authorization field. If the outcome is
// Authenticated, there is a token of the right form, which has yet to be
// verified. The reason is set if the outcome is Repeated or Invalid.
//
//	credentials = "Bearer" 1*SP b64token                          ; RFC 6750 section 2.1
//	b64token    = 1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"="
//
// The scheme is case-insensitive (RFC 9110 section 11.1). An absent or empty
// field, a scheme other than Bearer, and Bearer alone count as no token.
func credentials(lines []string, maxToken int) (token string, outcome Outcome, reason error) {
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
		return "", Invalid, fmt.Errorf("%w: %d bytes, limit %d", errTooLong, len(token), maxToken)
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

// tokenErrors are the errors with the name of the token in their text.
type tokenErrors struct {
	missing, invalid, unavailable *apierror.Error
}

func newTokenErrors(name string) tokenErrors {
	return tokenErrors{
		missing: apierror.New(http.StatusUnauthorized, "missing_api_key",
			"No "+name+" was sent. Send it as Authorization: Bearer <"+name+">.").Preencoded(),
		invalid: apierror.New(http.StatusUnauthorized, "invalid_api_key",
			"The "+name+" is not valid.").Preencoded(),
		unavailable: apierror.New(http.StatusServiceUnavailable, apierror.CodeUnavailable,
			"The "+name+" cannot be checked at the moment. Wait as long as Retry-After says."),
	}
}

// invalidFor returns the error of a token that is not valid. If the token was too long
// to verify, the error is logged: MaxToken may be too small.
func (e tokenErrors) invalidFor(reason error) *apierror.Error {
	if errors.Is(reason, errTooLong) {
		return e.invalid.Wrap(reason)
	}
	return e.invalid
}
