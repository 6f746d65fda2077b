package gatehouseecho

import (
	"errors"
	"net/http"
	"strings"

	"github.com/labstack/echo/v5"

	"github.com/animalstore/gatehouse/apierror"
)

var (
	notFound         = apierror.New(http.StatusNotFound, "not_found", "There is nothing at this path.")
	methodNotAllowed = apierror.New(http.StatusMethodNotAllowed, "method_not_allowed",
		"This method is not supported here. The Allow header lists the methods that are.")
)

// ErrorHandler returns an error handler for [echo.Echo.HTTPErrorHandler] that writes the
// errors of handlers, and Echo's own 404 and 405, in the envelope:
//
//   - an [apierror.Error] as it is;
//   - an error of Echo with its status and its message, which Echo sends to clients as
//     well. The code is the name of the status, such as "forbidden", or the code that
//     package apierror has for it;
//   - any other error as 500 internal, without its text, which is logged.
//
// If the response has begun, it does nothing, like Echo's own handler. Echo knows only inside
// [Wrap] that a connection was hijacked. A nil Responder works.
func ErrorHandler(rs *apierror.Responder) echo.HTTPErrorHandler {
	return func(c *echo.Context, err error) {
		if res, _ := echo.UnwrapResponse(c.Response()); res != nil && res.Committed {
			return
		}
		rs.Respond(c.Response(), c.Request(), inEnvelope(err))
	}
}

// inEnvelope returns err, or an apierror.Error for an error of Echo.
func inEnvelope(err error) error {
	if _, ok := errors.AsType[*apierror.Error](err); ok {
		return err
	}
	status := echo.StatusCode(err)
	if status < 400 || status > 599 {
		return err
	}
	switch {
	case err == error(echo.ErrNotFound):
		return notFound
	case err == error(echo.ErrMethodNotAllowed):
		return methodNotAllowed
	}
	public := apierror.New(status, code(status), "")
	if e, ok := errors.AsType[*echo.HTTPError](err); ok {
		public.Message = e.Message
		return public.Wrap(e.Unwrap()) // of nil: there is no cause
	}
	return public
}

func code(status int) apierror.Code {
	switch status {
	case http.StatusRequestEntityTooLarge:
		return "body_too_large"
	case http.StatusRequestURITooLong:
		return "uri_too_long"
	case http.StatusTooManyRequests:
		return "rate_limit_exceeded"
	case http.StatusInternalServerError:
		return "internal"
	case http.StatusServiceUnavailable:
		return "unavailable"
	}
	name := http.StatusText(status)
	if name == "" {
		return "error"
	}
	return apierror.Code(strings.NewReplacer(" ", "_", "-", "_", "'", "").Replace(strings.ToLower(name)))
}
