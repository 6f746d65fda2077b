package inflight

import (
	"fmt"
	"net/http"
	"time"

	"github.com/animalstore/gatehouse/apierror"
)

// Options are optional settings of a Limiter. The zero value works.
type Options struct {
	// Queue is how many requests of a subject (of the process, with [NewProcess]) may
	// wait for another one to finish. They are served in the order in which they came,
	// and before all that come later. A request that finds the queue full is refused
	// at once. 0 means that no request waits. A queue needs Wait.
	Queue int

	// Wait is how long a request waits in the queue at most before it is refused. A
	// request whose context ends earlier is refused then. Keep it short, such as
	// 100 ms: a waiting request keeps its connection and its goroutine, and its client
	// waits longer.
	Wait time.Duration

	// RetryAfter is the Retry-After of a refused request, rounded up to whole seconds.
	// When another request will finish is not known. 0 means 1 second.
	RetryAfter time.Duration

	// Shadow refuses nothing and lets no request wait. Requests beyond the limit are
	// served, and count: [Decision.Running] exceeds the limit. They are observed, and
	// counted in [Stats], as refused. It shows what a limit would do.
	Shadow bool

	// Observe is called with each decision before the request is served or refused, but
	// not for exempt requests and not if identify returned an error. c is what identify
	// returned, the zero Caller with [NewProcess]. Observe runs in the goroutine of the
	// request, and must be safe for concurrent use.
	Observe func(r *http.Request, c Caller, d Decision)

	// Deny writes the response to a refused request: the service's own body, status and
	// language. Retry-After is already set. c and d are those that Observe gets. Nil
	// means the default: 429 too_many_concurrent_requests, and with [NewProcess] 503
	// overloaded. An error of identify is still answered by Errors.
	Deny func(w http.ResponseWriter, r *http.Request, c Caller, d Decision)

	// Errors writes all responses to refused requests that Deny does not write. Nil
	// works.
	Errors *apierror.Responder
}

func (o *Options) validate() error {
	switch {
	case o.Queue < 0:
		return fmt.Errorf("inflight: Options.Queue must be 0 or more requests, got %d", o.Queue)
	case o.Wait < 0:
		return fmt.Errorf("inflight: Options.Wait must be 0s or more, got %v", o.Wait)
	case o.Queue > 0 && o.Wait == 0:
		return fmt.Errorf("inflight: Options.Queue is %d, so Options.Wait must be above 0s", o.Queue)
	case o.Queue == 0 && o.Wait > 0:
		return fmt.Errorf("inflight: Options.Wait is %v, so Options.Queue must be 1 or more", o.Wait)
	case o.RetryAfter < 0:
		return fmt.Errorf("inflight: Options.RetryAfter must be above 0s, or 0s for 1s, got %v", o.RetryAfter)
	}
	return nil
}

// A Decision says what became of a request.
type Decision struct {
	Admitted bool          // whether the limit allows it
	Limit    int           // the limit that applied
	Running  int           // requests of the subject that run, with this one if it runs too
	Waited   time.Duration // time in the queue; 0 if it did not wait
}

// Stats are the numbers of a Limiter, for metrics.
type Stats struct {
	Running  int    // requests that run
	Waiting  int    // requests in queues
	Subjects int    // subjects with a request that runs; at most 1 with NewProcess
	Admitted uint64 // requests within the limit, since the Limiter was made
	Refused  uint64 // requests beyond the limit, since the Limiter was made
}
