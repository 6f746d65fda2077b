package apierror

// Code names an error for programs. It is lower snake case and is never changed
// once published. A service defines its own codes beside those of this module:
//
//	code                          status  when
//	invalid_body                  400     the body is malformed, incomplete, or breaks its schema
//	invalid_parameter             400     a query parameter is malformed, out of range or repeated
//	invalid_request               400     there is more than one Authorization header, or a gateway refuses the path or Upgrade
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
//	bad_gateway                   502     the service behind a gateway gave no usable response
//	unavailable                   503     the service cannot answer at the moment; see Retry-After
//	overloaded                    503     the service has as many requests in progress as it can handle; see Retry-After
//	gateway_timeout               504     the service behind a gateway did not respond in time
type Code string

// The codes that the packages of this module send, and two that only services send:
// CodeInvalidParameter and CodePreconditionFailed.
const (
	CodeInvalidBody               Code = "invalid_body"
	CodeInvalidParameter          Code = "invalid_parameter"
	CodeInvalidRequest            Code = "invalid_request"
	CodeCostExceedsLimit          Code = "cost_exceeds_limit"
	CodeMissingAPIKey             Code = "missing_api_key"
	CodeInvalidAPIKey             Code = "invalid_api_key"
	CodePlanSuspended             Code = "plan_suspended"
	CodeNotFound                  Code = "not_found"
	CodeMethodNotAllowed          Code = "method_not_allowed"
	CodeOperationRemoved          Code = "operation_removed"
	CodePreconditionFailed        Code = "precondition_failed"
	CodeBodyTooLarge              Code = "body_too_large"
	CodeURITooLong                Code = "uri_too_long"
	CodeUnsupportedMediaType      Code = "unsupported_media_type"
	CodeRateLimitExceeded         Code = "rate_limit_exceeded"
	CodeAPIKeyBanned              Code = "api_key_banned"
	CodeClientBanned              Code = "client_banned"
	CodeTooManyConcurrentRequests Code = "too_many_concurrent_requests"
	CodeInternal                  Code = "internal"
	CodeBadGateway                Code = "bad_gateway"
	CodeUnavailable               Code = "unavailable"
	CodeOverloaded                Code = "overloaded"
	CodeGatewayTimeout            Code = "gateway_timeout"
)
