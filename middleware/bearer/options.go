package bearer

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/animalstore/gatehouse/apierror"
)

const (
	defaultMaxToken    = 256
	defaultDescription = "The API key is not valid"
	defaultRetryAfter  = 5 * time.Second
)

// Options holds what [New] can do without. The zero value works.
type Options struct {
	// MaxToken is the length in octets beyond which a token is not valid, without
	// being verified. 0 means 256.
	MaxToken int

	// Description is the error_description for a token that is not valid: printable
	// ASCII without quotation marks and backslashes (RFC 6750 section 3). If empty,
	// it is "The API key is not valid".
	Description string

	// RetryAfter is what a client is told to wait when its token could not be
	// verified, rounded up to whole seconds. 0 means 5 seconds.
	RetryAfter time.Duration

	// Errors writes the responses of Require. Nil works.
	Errors *apierror.Responder
}

func (o Options) validate() error {
	if o.MaxToken < 0 {
		return fmt.Errorf("bearer: Options.MaxToken: %d is negative", o.MaxToken)
	}
	if o.Description != "" {
		if err := checkText(o.Description); err != nil {
			return fmt.Errorf("bearer: Options.Description: %w", err)
		}
	}
	if o.RetryAfter < 0 {
		return fmt.Errorf("bearer: Options.RetryAfter: %v is negative", o.RetryAfter)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.MaxToken == 0 {
		o.MaxToken = defaultMaxToken
	}
	if o.Description == "" {
		o.Description = defaultDescription
	}
	if o.RetryAfter == 0 {
		o.RetryAfter = defaultRetryAfter
	}
	return o
}

// challenge returns a WWW-Authenticate value (RFC 6750 section 3). Without a
// description it has no error code either: that of a request without a token
// (section 3.1). Realm and description have passed checkText, so that they need
// no escapes, which many clients cannot read.
func challenge(realm, description string) string {
	c := `Bearer realm="` + realm + `"`
	if description != "" {
		c += `, error="invalid_token", error_description="` + description + `"`
	}
	return c
}

// checkText reports whether text can stand between the quotation marks of an
// auth-param as it is: %x20-21 / %x23-5B / %x5D-7E, at least once.
func checkText(text string) error {
	if text == "" {
		return errors.New("is empty")
	}
	for i, c := range []byte(text) {
		if c < 0x20 || c > 0x7e || c == '"' || c == '\\' {
			return fmt.Errorf("%q has a character at %d that is not allowed: only printable ASCII without \" and \\", text, i)
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
