package apierror

// Code names an error for programs. It is lower snake case and is never changed
// once published. Services define their own beside these.
type Code string

// The codes that the packages of this module use. The package documentation
// lists the status and the meaning of each.
const (
	CodeInvalidBody          Code = "invalid_body"
	CodeInvalidParameter     Code = "invalid_parameter"
	CodeInvalidRequest       Code = "invalid_request"
	CodeCostExceedsLimit     Code = "cost_exceeds_limit"
	CodeMissingAPIKey        Code = "missing_api_key"
	CodeInvalidAPIKey        Code = "invalid_api_key"
	CodeNotFound             Code = "not_found"
	CodePetNotFound          Code = "pet_not_found"
	CodeMethodNotAllowed     Code = "method_not_allowed"
	CodeOperationRemoved     Code = "operation_removed"
	CodePreconditionFailed   Code = "precondition_failed"
	CodeBodyTooLarge         Code = "body_too_large"
	CodeURITooLong           Code = "uri_too_long"
	CodeUnsupportedMediaType Code = "unsupported_media_type"
	CodeRateLimitExceeded    Code = "rate_limit_exceeded"
	CodeAPIKeyBanned         Code = "api_key_banned"
	CodeClientBanned         Code = "client_banned"
	CodeInternal             Code = "internal"
	CodeUnavailable          Code = "unavailable"
)
