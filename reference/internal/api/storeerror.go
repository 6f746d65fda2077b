package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

var errUnavailable = apierror.New(http.StatusServiceUnavailable, apierror.CodeUnavailable,
	"The service is temporarily unavailable. Wait as long as Retry-After says.")

// retryAfter is the Retry-After of such a 503, in seconds.
const retryAfter = "5"

// storeError turns errors that can pass, such as a timeout, into a 503. It returns any
// other error as it is.
func storeError(w http.ResponseWriter, err error) error {
	switch {
	case errors.Is(err, errUnavailable):
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		err = errUnavailable.Wrap(err)
	default:
		return err
	}
	w.Header().Set("Retry-After", retryAfter)
	return err
}
