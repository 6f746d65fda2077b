package gatehouseconnect

import (
	"errors"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/animalstore/gatehouse/adapters/internal/rpclimit"
)

// isConnectError reports whether err has a code. Code 0 does not count: clients of gRPC
// would see a refused stream end as if it had been served.
func isConnectError(err error) bool {
	e, ok := errors.AsType[*connect.Error](err)
	return ok && e != nil && e.Code() != 0
}

// connectError returns the error that sends a denial.
func connectError(d *rpclimit.Denial) error {
	if d.Native != nil {
		return d.Native
	}
	err := connect.NewError(connect.Code(d.Code), errors.New(d.Message))
	addDetail(err, &errdetails.ErrorInfo{Reason: d.Reason, Domain: rpclimit.Domain})
	if d.RetryAfter > 0 {
		addDetail(err, &errdetails.RetryInfo{RetryDelay: durationpb.New(d.RetryAfter)})
	}
	if len(d.Violations) > 0 {
		failure := new(errdetails.QuotaFailure)
		for _, v := range d.Violations {
			failure.Violations = append(failure.Violations,
				&errdetails.QuotaFailure_Violation{QuotaId: v.ID, QuotaValue: v.Limit, Description: v.Description})
		}
		addDetail(err, failure)
	}
	return err
}

func addDetail(err *connect.Error, message proto.Message) {
	if detail, failed := connect.NewErrorDetail(message); failed == nil { // these messages can always be encoded
		err.AddDetail(detail)
	}
}
