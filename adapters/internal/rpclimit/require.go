package rpclimit

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/nilvalue"
)

// A Requirer refuses calls without a principal, as a bearer.Authenticator does.
type Requirer interface {
	RequireCall(ctx context.Context, method string) (http.Header, *apierror.Error)
}

// MustHave panics if a constructor of an adapter gets no authenticator.
func MustHave(a Requirer, constructor string) {
	if nilvalue.In(a) {
		panic(constructor + ": the authenticator must not be nil")
	}
}

// Require returns the refusal of a call, or nil if a finds a principal in ctx.
func Require(ctx context.Context, a Requirer, method string) *Call {
	fields, err := a.RequireCall(ctx, method)
	if err == nil {
		return nil
	}
	denial := FromError(err)
	if s, err := strconv.ParseInt(fields.Get("Retry-After"), 10, 32); err == nil {
		denial.RetryAfter = time.Duration(s) * time.Second
	}
	return &Call{Denial: denial, Fields: fields}
}
