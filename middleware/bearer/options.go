package bearer

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/animalstore/gatehouse/apierror"
)

const (
	defaultMaxToken   = 16 << 10
	defaultTokenName  = "API key"
	defaultRetryAfter = 5 * time.Second

	repeatedDescription = "More than one Authorization header was sent"
)

// Options are optional settings of [New]. The zero value works.
type Options struct {
	// MaxToken is the largest length of a token in bytes. A longer one is refused
	// without being verified, and the refusal is logged with its length. 0 means
	// 16,384: a JWT with many groups or roles has 10,000 bytes and more, and nginx and
	// Apache accept 8 KiB in one field by default. The limit bounds the work of the
	// verify function; net/http bounds the whole header ([http.Server.MaxHeaderBytes]).
	MaxToken int

	// Observe, if set, is called by Identify with each request without a principal.
	// The reason is nil if the outcome is Missing, the error of the verify function if
	// it was called, and otherwise what is wrong with the field. Observe runs in the
	// goroutine of the request before next is called, and must be safe for concurrent
	// use.
	Observe func(r *http.Request, o Outcome, reason error)

	// TokenName is what the texts of responses call the token, such as "access
	// token": printable ASCII without quotation marks and backslashes (RFC 6750
	// section 3). If empty, it is "API key".
	TokenName string

	// RetryAfter is the Retry-After of the 503 for a token that could not be verified,
	// rounded up to whole seconds. 0 means 5 seconds.
	RetryAfter time.Duration

	// Errors writes the responses of Require. Nil works.
	Errors *apierror.Responder
}

func (o Options) validate() error {
	if o.MaxToken < 0 {
		return fmt.Errorf("bearer: Options.MaxToken must be 1 or more bytes, or 0 for %d, got %d", defaultMaxToken, o.MaxToken)
	}
	if o.TokenName != "" {
		if err := checkText(o.TokenName); err != nil {
			return fmt.Errorf("bearer: Options.TokenName %w", err)
		}
	}
	if o.RetryAfter < 0 {
		return fmt.Errorf("bearer: Options.RetryAfter must be above 0s, or 0s for 5s, got %v", o.RetryAfter)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.MaxToken == 0 {
		o.MaxToken = defaultMaxToken
	}
	if o.TokenName == "" {
		o.TokenName = defaultTokenName
	}
	if o.RetryAfter == 0 {
		o.RetryAfter = defaultRetryAfter
	}
	return o
}

// challenge returns a WWW-Authenticate value (RFC 6750 section 3). The error is
// empty for a request without a token (section 3.1). Realm and token name have
// passed checkText and need no escapes, which many clients cannot read.
func challenge(realm, code, description string) string {
	c := `Bearer realm="` + realm + `"`
	if code != "" {
		c += `, error="` + code + `", error_description="` + description + `"`
	}
	return c
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

// seconds returns a delay-seconds (RFC 9110 section 10.2.3).
func seconds(d time.Duration) string {
	whole := d / time.Second
	if d%time.Second > 0 {
		whole++
	}
	return strconv.FormatInt(int64(whole), 10)
}
