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

// retryAfter is how many seconds a client must wait while the store fails.
const retryAfter = "5"

// failure makes a 503 of the errors that mean "not now".
func failure(w http.ResponseWriter, err error) error {
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
