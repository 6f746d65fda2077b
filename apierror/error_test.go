package apierror_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/animalstore/gatehouse/apierror"
)

func TestErrorCopies(t *testing.T) {
	cause := errors.New("no rows")
	derived := invalidBody.Wrap(cause).WithDetails(apierror.Detail{Pointer: "/status", Detail: "is not one of available, pending, sold"})

	if !errors.Is(derived, cause) {
		t.Error("the cause is not in the error's tree")
	}
	if !errors.Is(fmt.Errorf("create: %w", derived), invalidBody) {
		t.Error("a copy is not found by the error it was derived from")
	}
	if errors.Is(derived, petNotFound) || errors.Is(apierror.New(409, apierror.CodeInvalidBody, ""), invalidBody) {
		t.Error("errors of different status or code are taken for one another")
	}
	if errors.Unwrap(invalidBody) != nil || len(invalidBody.Details) != 2 || len(derived.Details) != 3 {
		t.Error("deriving an error changed the original")
	}

	base := invalidBody.WithDetails()
	base.Details = slices.Grow(base.Details, 4)
	first, second := base.WithDetails(apierror.Detail{Detail: "first"}), base.WithDetails(apierror.Detail{Detail: "second"})
	if first.Details[2].Detail != "first" || second.Details[2].Detail != "second" {
		t.Error("two errors derived from one share their details")
	}
}
