package rpclimit

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/nilvalue"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// Domain is the domain of google.rpc.ErrorInfo in errors of Gatehouse.
const Domain = "github.com/animalstore/gatehouse"

// A Denial is the error that a call is answered with.
type Denial struct {
	Code    Code
	Reason  string // of google.rpc.ErrorInfo: the code of package apierror in upper case
	Message string

	// RetryAfter is how long to wait before a retry, in whole milliseconds, rounded up;
	// 0 if a retry does not help.
	RetryAfter time.Duration

	Violations []Violation // the quotas that are exhausted

	// Native is an error of identify in the form of the framework. It is sent as it is, and
	// no other field is set.
	Native error
}

// A Violation is one of a google.rpc.QuotaFailure.
type Violation struct {
	ID          string // the name of the quota in RateLimit-Policy: "minute"
	Description string // "60/minute"
	Limit       int64  // 60
}

// FromError returns the denial that sends a public error. As in HTTP, bytes that are not
// UTF-8 are replaced: a status with them cannot be encoded.
func FromError(e *apierror.Error) *Denial {
	message := cmp.Or(e.Message, http.StatusText(e.Status))
	return &Denial{
		Code: codeOf(e.Status), Reason: strings.ToUpper(string(e.Code)), Message: strings.ToValidUTF8(message, "\uFFFD"),
		RetryAfter: milliseconds(e.RetryAfter),
	}
}

// denialOf returns the denial that sends an error of the middleware.
func (c *Call) denialOf(e *apierror.Error) *Denial {
	denial, d := FromError(e), &c.decision
	if !c.denied {
		return denial
	}
	denial.RetryAfter = milliseconds(d.RetryAfter)
	names := e.ViolatedPolicies
	for i := 0; len(names) > 0 && i < engine.Of(d.Plan).Len(); i++ {
		if d.States[i].Remaining < d.Cost {
			q := engine.Of(d.Plan).Quota(i)
			denial.Violations = append(denial.Violations, Violation{ID: names[0], Description: q.String(), Limit: q.Limit})
			names = names[1:]
		}
	}
	return denial
}

func milliseconds(d time.Duration) time.Duration {
	return (min(d, math.MaxInt64-time.Millisecond) + time.Millisecond - 1).Truncate(time.Millisecond)
}

// A Requirer refuses calls without a principal, as a bearer.Authenticator does.
type Requirer interface {
	RequireCall(ctx context.Context, request func() *http.Request) (http.Header, *apierror.Error)
}

// MustHave panics if a constructor of an adapter gets no authenticator.
func MustHave(a Requirer, constructor string) {
	if nilvalue.In(a) {
		panic(constructor + ": the authenticator must not be nil")
	}
}

// Require returns the refusal of a call, or nil if a finds a principal in its context.
// request returns the call with its header, on which the message may depend.
func Require(ctx context.Context, a Requirer, request func() *http.Request) *Call {
	fields, err := a.RequireCall(ctx, request)
	if err == nil {
		return nil
	}
	return &Call{Context: ctx, Denial: FromError(err), Fields: fields}
}
