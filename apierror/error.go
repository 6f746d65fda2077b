package apierror

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Error is an error with public text. Its fields are sent to the client; its
// cause is only logged.
//
// Errors are values to share: declare one as a package variable and derive from
// it with [Error.Wrap] and [Error.WithDetails], which copy. An Error must not be
// changed once it is in use; it is then safe for concurrent use.
type Error struct {
	Status  int      // HTTP status, 400 to 599
	Code    Code     // not empty
	Message string   // for people, one sentence; if empty, the phrase of the status is sent
	Details []Detail // what exactly is wrong; sent in problem details only, as "errors"

	// ProblemType and ProblemTitle are the URI and the title of the problem type (RFC 9457), sent
	// in problem details only. "" means about:blank, and the phrase of the status.
	ProblemType, ProblemTitle string

	// ViolatedPolicies are the names, as in RateLimit-Policy, of the quotas that the request
	// exceeded: the member "violated-policies" of draft-ietf-httpapi-ratelimit-headers-11 section
	// 5. It is sent in problem details only, and omitted if empty.
	ViolatedPolicies []string

	// Args are the values in Message, for a [Responder] that writes it in another language:
	// see [Code]. They are not sent.
	Args map[string]any

	// RetryAfter is sent as Retry-After, in whole seconds, rounded up, unless the response
	// has that field. 0 or less sends none.
	RetryAfter time.Duration

	cause      error
	preencoded *[2]encoded // the bodies, if Preencoded made them: the envelope, then problem details
}

// Detail says what is wrong at one place of a request body.
type Detail struct {
	Pointer string `json:"pointer"` // JSON Pointer (RFC 6901): "/name"; "" is the whole body
	Detail  string `json:"detail"`  // "is required"

	// Rule is the keyword of JSON Schema that the place breaks, such as "required" or
	// "maxLength", for texts in another language; "" if nothing is allowed there, or
	// it breaks another rule. It is not sent.
	Rule string `json:"-"`
}

// New returns an error with a status, a code and a message for the client. A status
// outside 400 to 599 or an empty code is a mistake in the program: a [Responder]
// answers 500 instead and logs it.
func New(status int, code Code, message string) *Error {
	return &Error{Status: status, Code: code, Message: message}
}

// Preencoded returns a copy of e with its bodies encoded in advance, for an error
// that is sent often, such as a 429. The exported fields of the copy must not be
// changed, except RetryAfter in a copy of that.
func (e *Error) Preencoded() *Error {
	c := *e
	if c.valid() {
		c.preencoded = &[2]encoded{encode(&c, false), encode(&c, true)}
	}
	return &c
}

// Error returns status, code, message and cause. It is meant for logs: unlike
// Message it can hold private text.
func (e *Error) Error() string {
	if e == nil {
		return "nil *apierror.Error"
	}
	s := fmt.Sprintf("%d %s: %s", e.Status, e.Code, e.message())
	if e.cause != nil {
		s = strings.TrimSuffix(s, ".") + ": " + e.cause.Error()
	}
	return s
}

// Unwrap returns the cause, or nil.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.cause
}

// Is reports whether target is an Error of the same status and code, so that
// [errors.Is] finds a package variable in the copies derived from it.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && e != nil && t != nil && e.Status == t.Status && e.Code == t.Code
}

// Wrap returns a copy of e with cause, which is logged and never sent, instead of any
// earlier cause.
func (e *Error) Wrap(cause error) *Error {
	c := *e
	c.cause = cause
	return &c
}

// WithDetails returns a copy of e with d added to its details.
func (e *Error) WithDetails(d ...Detail) *Error {
	c := *e
	c.Details = slices.Concat(e.Details, d)
	c.preencoded = nil
	return &c
}

func (e *Error) valid() bool {
	return e.Status >= 400 && e.Status <= 599 && e.Code != ""
}

// message returns text that is never empty, since clients show it to people.
func (e *Error) message() string {
	switch phrase := http.StatusText(e.Status); {
	case e.Message != "":
		return e.Message
	case phrase != "":
		return phrase
	default:
		return string(e.Code)
	}
}

// Code names an error for programs. It is lower snake case and is never changed
// once published. Programs write it as a text: e.Code == "rate_limit_exceeded". A service
// defines further codes of its own:
//
//	code                          status  when
//	invalid_body                  400     the body is malformed, incomplete, or breaks its schema
//	invalid_parameter             400     a query parameter is malformed, out of range or repeated
//	invalid_request               400     there is more than one Authorization header
//	cost_exceeds_limit            400     the request costs more than a quota of the plan allows
//	missing_api_key               401     no credentials were sent
//	invalid_api_key               401     the credentials are malformed, unknown, expired or revoked
//	plan_suspended                403     the caller's plan allows no requests; a retry does not help
//	not_found                     404     nothing is at this path
//	method_not_allowed            405     the path exists, the method does not; see Allow
//	operation_removed             410     the operation is past its sunset, or switched off for a time before it
//	precondition_failed           412     If-Match or another precondition is false
//	body_too_large                413     the body exceeds the limit
//	uri_too_long                  414     the request target exceeds the limit
//	unsupported_media_type        415     the body's media type or coding is not accepted; see Accept, Accept-Encoding
//	rate_limit_exceeded           429     a quota is exhausted; see Retry-After
//	api_key_banned                429     the key's owner is temporarily banned; see Retry-After
//	client_banned                 429     the client or its network is temporarily banned; see Retry-After
//	too_many_concurrent_requests  429     the client has as many requests in progress as it may; see Retry-After
//	internal                      500     the service failed; the cause is in its log
//	unavailable                   503     the service cannot answer at the moment; see Retry-After
//	overloaded                    503     the service has as many requests in progress as it can handle; see Retry-After
//	gateway_timeout               504     an RPC ended before it was counted
//
// These have values in [Error.Args]:
//
//	rate_limit_exceeded           quota (text such as "60/minute"), limit, cost, remaining, scope, and strikes if more may lead to a ban
//	cost_exceeds_limit            cost, scope, quota, limit; the last two if a quota of the plan is the reason
//	api_key_banned                scope (text, of the plan; "" if it has none), reason ("strikes", "by hand", or the operator's text)
//	client_banned                 scope, reason
//	plan_suspended                scope
//	too_many_concurrent_requests  limit
//	body_too_large, uri_too_long  limit, in bytes, if it is known
//	operation_removed             sunset (a time.Time), successor (text, or "")
type Code string
