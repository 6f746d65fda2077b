package rpclimit

import "net/http"

// A Code is the status of a call. gRPC and Connect number them in the same way
// (google.rpc.Code).
type Code uint32

// The codes that this package uses.
const (
	OK                 Code = 0
	Canceled           Code = 1
	InvalidArgument    Code = 3
	DeadlineExceeded   Code = 4
	NotFound           Code = 5
	PermissionDenied   Code = 7
	ResourceExhausted  Code = 8
	FailedPrecondition Code = 9
	Aborted            Code = 10
	Unimplemented      Code = 12
	Internal           Code = 13
	Unavailable        Code = 14
	DataLoss           Code = 15
	Unauthenticated    Code = 16
)

// codeOf returns the code for an HTTP status, 400 to 599: the reverse of the table in
// google/rpc/code.proto.
func codeOf(status int) Code {
	switch status {
	case http.StatusUnauthorized:
		return Unauthenticated
	case http.StatusForbidden:
		return PermissionDenied
	case http.StatusNotFound:
		return NotFound
	case http.StatusConflict:
		return Aborted
	case http.StatusPreconditionFailed:
		return FailedPrecondition
	case http.StatusTooManyRequests:
		return ResourceExhausted
	case 499: // the client closed the request
		return Canceled
	case http.StatusNotImplemented:
		return Unimplemented
	case http.StatusServiceUnavailable:
		return Unavailable
	case http.StatusGatewayTimeout:
		return DeadlineExceeded
	}
	if status >= 500 {
		return Internal
	}
	return InvalidArgument
}

// ServerFault reports whether the code says that the server has failed, and that its client
// cannot be the reason. UNKNOWN is any error without a code, such as io.EOF of a stream without
// messages; a client can choose a method that is UNIMPLEMENTED, and a deadline.
func (c Code) ServerFault() bool { return c == Internal || c == Unavailable || c == DataLoss }
