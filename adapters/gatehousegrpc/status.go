package gatehousegrpc

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/animalstore/gatehouse/adapters/internal/rpclimit"
	"github.com/animalstore/gatehouse/internal/nilvalue"
)

// maxPushback is the longest wait that a client with a retry policy is asked for. A
// longer one would hold its call up until the deadline, if it has one.
const maxPushback = time.Minute

// hasStatus reports whether err has a gRPC status, as one of package status has. A status
// that is OK does not count: a refused stream would end as if it had been served. That of a nil
// pointer does not either: the method panics.
func hasStatus(err error) bool {
	e, ok := errors.AsType[interface {
		error
		GRPCStatus() *status.Status
	}](err)
	return ok && !nilvalue.In(e) && e.GRPCStatus().Code() != codes.OK
}

// statusError returns the error that sends a denial.
func statusError(d *rpclimit.Denial) error {
	if d.Native != nil {
		return d.Native
	}
	details := []protoadapt.MessageV1{
		protoadapt.MessageV1Of(&errdetails.ErrorInfo{Reason: d.Reason, Domain: rpclimit.Domain}),
	}
	if d.RetryAfter > 0 {
		details = append(details, protoadapt.MessageV1Of(&errdetails.RetryInfo{RetryDelay: durationpb.New(d.RetryAfter)}))
	}
	if len(d.Violations) > 0 {
		failure := new(errdetails.QuotaFailure)
		for _, v := range d.Violations {
			failure.Violations = append(failure.Violations,
				&errdetails.QuotaFailure_Violation{QuotaId: v.ID, QuotaValue: v.Limit, Description: v.Description})
		}
		details = append(details, protoadapt.MessageV1Of(failure))
	}
	st := status.New(codes.Code(d.Code), d.Message)
	if detailed, err := st.WithDetails(details...); err == nil { // these messages can always be encoded
		st = detailed
	}
	return st.Err()
}

// refusedMetadata returns the trailer of a call that is refused.
func refusedMetadata(call *rpclimit.Call) metadata.MD {
	md := toMetadata(call.Claim())
	switch wait := call.Denial.RetryAfter; {
	case wait > maxPushback:
		md.Set(pushback, "-1") // do not retry
	case wait > 0:
		md.Set(pushback, strconv.FormatInt(wait.Milliseconds(), 10))
	}
	return md
}

// pushback tells clients with a retry policy when to retry (gRFC A6).
const pushback = "grpc-retry-pushback-ms"

func toMetadata(fields http.Header) metadata.MD {
	md := make(metadata.MD, len(fields)+1)
	for name, values := range fields {
		md[strings.ToLower(name)] = values
	}
	return md
}
