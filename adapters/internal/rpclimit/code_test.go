package rpclimit

import (
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/apierror"
)

func TestCodes(t *testing.T) {
	for status, want := range map[int]Code{
		400: InvalidArgument, 401: Unauthenticated, 403: PermissionDenied, 404: NotFound, 405: InvalidArgument,
		409: Aborted, 412: FailedPrecondition, 422: InvalidArgument, 429: ResourceExhausted, 499: Canceled,
		500: Internal, 501: Unimplemented, 502: Internal, 503: Unavailable, 504: DeadlineExceeded, 599: Internal,
	} {
		if got := codeOf(status); got != want {
			t.Errorf("status %d has the code %d, want %d", status, got, want)
		}
		if got := codeOf(status).serverFault(); got != (status >= 500) {
			t.Errorf("status %d: a fault of the server: %v", status, got)
		}
	}
	for _, c := range []Code{OK, Canceled, ResourceExhausted, Unauthenticated} {
		if c.serverFault() {
			t.Errorf("code %d is a fault of the server", c)
		}
	}
	if !Unknown.serverFault() || !DataLoss.serverFault() {
		t.Error("unknown and data loss are faults of the server")
	}
}

// A wait is never shortened: a client that waits as long is admitted.
func TestWaitsAreRoundedUp(t *testing.T) {
	for wait, want := range map[time.Duration]time.Duration{
		0: 0, 1: time.Millisecond, time.Millisecond: time.Millisecond, time.Second + 1: 1001 * time.Millisecond,
		math.MaxInt64: math.MaxInt64 / time.Millisecond * time.Millisecond,
	} {
		if got := milliseconds(wait); got != want {
			t.Errorf("a wait of %v is sent as %v, want %v", wait, got, want)
		}
	}
}

// An error without a text has that of its status.
func TestMessageIsNeverEmpty(t *testing.T) {
	d := FromError(apierror.New(http.StatusNotFound, "no_tenant", ""))
	if d.Message != "Not Found" || d.Reason != "NO_TENANT" || d.Code != NotFound {
		t.Errorf("denial %+v", d)
	}
}
