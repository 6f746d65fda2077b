package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/apierror"
)

var (
	badGateway     = apierror.New(http.StatusBadGateway, "bad_gateway", "The service behind this gateway did not give a usable response.")
	gatewayTimeout = apierror.New(http.StatusGatewayTimeout, "gateway_timeout", "The service behind this gateway did not respond in time.")
	brokenBody     = apierror.New(http.StatusBadRequest, apierror.CodeInvalidBody, "The request body could not be read to its end.")
	longBody       = apierror.New(http.StatusRequestEntityTooLarge, apierror.CodeBodyTooLarge, "The request body is too long.")
	badMethod      = apierror.New(http.StatusBadRequest, apierror.CodeInvalidRequest, "The method is malformed.")
	badUpgrade     = apierror.New(http.StatusBadRequest, apierror.CodeInvalidRequest, "The Upgrade header is malformed, or not supported here.")
	longHeader     = apierror.New(http.StatusRequestHeaderFieldsTooLarge, apierror.CodeInvalidRequest, "The header of the request is too long for the service behind this gateway.")
	limited        = apierror.New(http.StatusServiceUnavailable, apierror.CodeUnavailable, "The service behind this gateway accepts no more requests for now. Wait as long as Retry-After says.")
	otherTarget    = apierror.New(http.StatusBadRequest, apierror.CodeInvalidRequest, "The request target must be a path or an HTTP URL. CONNECT is not supported.")
	dotSegments    = apierror.New(http.StatusBadRequest, apierror.CodeInvalidRequest, "The path must not contain dot segments such as /../ and /./.")
)

// fail answers a request for which there is no response to pass on. out is the request to
// the backend.
func (x *exchange) fail(_ http.ResponseWriter, out *http.Request, err error) {
	x.restore()
	if x.proxy.ErrorHandler != nil {
		x.proxy.ErrorHandler(x.Tracker, out, err)
		return
	}
	x.errs.Respond(x.Tracker, x.r, x.public(err))
}

// A limitError is the error of a transport that keeps within the limits of the backend:
// *transport.LimitError of package ratelimit/transport.
type limitError interface {
	error
	RetryAfter() time.Duration
}

// public returns err with what the client gets.
func (x *exchange) public(err error) error {
	if _, ok := errors.AsType[*apierror.Error](err); ok {
		return err
	}
	if !x.rewritten {
		return badUpgrade.Wrap(err) // nothing else is checked before Rewrite
	}
	if x.body.brought(err) {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return longBody.Wrap(err)
		}
		return brokenBody.Wrap(err)
	}
	if public := unsent(x.r.Method, err.Error()); public != nil {
		return public.Wrap(err)
	}
	if l, ok := errors.AsType[limitError](err); ok { // may wrap context.DeadlineExceeded
		x.header.Del("Retry-After") // of a middleware
		public := limited.Wrap(err)
		public.RetryAfter = max(l.RetryAfter(), time.Second)
		return public
	}
	if t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); ok && t.Timeout() {
		return gatewayTimeout.Wrap(err)
	}
	return badGateway.Wrap(err)
}

// unsent returns what the client gets if net/http refused to send its request because of
// err, for which it has no type: nil if it did not. A client chooses the method over HTTP/2
// freely; the others are about backends that speak HTTP/2.
func unsent(method, err string) *apierror.Error {
	switch {
	case err == fmt.Sprintf("net/http: invalid method %q", method):
		return badMethod
	case strings.HasPrefix(err, "http2: invalid Upgrade request header"):
		return badUpgrade
	case err == "http2: request header list larger than peer's advertised limit":
		return longHeader
	}
	return nil
}

// requestBody is a body that knows how reading it has failed.
type requestBody struct {
	io.ReadCloser
	failed atomic.Pointer[error]
}

func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		failed := err // on the heap only here
		b.failed.Store(&failed)
	}
	return n, err
}

// brought reports whether the request failed with err because reading the body has
// failed. If the backend fails first, the transport closes the body, and reading it fails
// with another error. If the client disconnects, net/http may cancel the request first.
func (b *requestBody) brought(err error) bool {
	failed := b.failed.Load()
	return failed != nil && (errors.Is(err, *failed) || errors.Is(err, context.Canceled))
}
