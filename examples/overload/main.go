// Overload is a service that gets more requests than it can serve, and refuses free
// users before paying ones. An adaptive limiter of failsafe-go finds out how many
// requests the service can run at once; each plan may fill a share of that.
//
//	go run ./examples/overload
//	for i in $(seq 500); do curl -s -o /dev/null -w '%{http_code} ' -u ann: http://127.0.0.1:8081/report & done
//	curl -i -u bob@paying: http://127.0.0.1:8081/report     # meanwhile
//
// The test measures what each plan gets; docs/PLANS.md has the figures. For a limit that is
// known and fixed, package inflight is enough: see its ExampleNewProcess.
package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/examples/internal/demo"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

var (
	free = ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(600))
	paid = ratelimit.MustPlan("paid", ratelimit.DefaultPenalty(), ratelimit.PerMinute(6000))

	// A plan that is not here may fill the service.
	shares = map[*ratelimit.Plan]float64{free: 0.8}

	overloaded = &apierror.Error{
		Status: http.StatusServiceUnavailable, Code: "overloaded",
		Message: "The service is handling as many requests as it can. Wait as long as Retry-After says.", RetryAfter: time.Second,
	}
)

func main() { demo.Serve(newHandler(shed)) }

// newHandler returns a service of 500 reports a second. shed is inside of the limit, where the
// plan is known. What it refuses is a 503, and not charged.
func newHandler(shed func(http.Handler) http.Handler) (http.Handler, error) {
	engine, err := memory.New(memory.Options{})
	if err != nil {
		return nil, err
	}
	limited, err := limit.New(engine, limit.Addresses{}.Identify(planOf), limit.Options{Settle: true, ChargeIf: limit.NotServerError})
	if err != nil {
		return nil, err
	}
	database := make(chan struct{}, 20) // its connections
	return limited(shed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case database <- struct{}{}:
			time.Sleep(40 * time.Millisecond)
			<-database
			fmt.Fprintln(w, "report")
		case <-r.Context().Done(): // the client has waited for too long
		}
	}))), nil
}

// planOf takes the word of the client for its name. A service would check a key first.
func planOf(r *http.Request) (string, *ratelimit.Plan, error) {
	user, _, _ := r.BasicAuth()
	if strings.HasSuffix(user, "@paying") {
		return user, paid, nil
	}
	return user, free, nil
}

// shed admits as many requests at once as the limiter allows, and further ones of plans
// without a share if that takes no longer than 50 ms.
func shed(next http.Handler) http.Handler {
	limiter := adaptivelimiter.NewWithDefaults[any]()
	var errs *apierror.Responder
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		permit, err := adaptivelimiter.Permit(nil), adaptivelimiter.ErrExceeded
		share, shared := shares[limit.FromContext(r.Context()).Caller().Plan]
		if !shared || float64(limiter.Inflight()) < share*float64(limiter.Limit()) {
			permit, err = limiter.AcquirePermitWithMaxWait(r.Context(), 50*time.Millisecond)
		}
		switch {
		case err == nil:
			defer permit.Record()
			next.ServeHTTP(w, r)
		case errors.Is(err, adaptivelimiter.ErrExceeded):
			errs.Respond(w, r, overloaded)
		default: // the client has disconnected
			errs.Respond(w, r, err)
		}
	})
}
