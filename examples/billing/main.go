// Billing is a service with a monthly quota that begins on each customer's billing day, a
// daily one in the customer's time zone, and a smooth one against bursts. A page, which is
// outside the limit, shows customers what they have used.
//
//	go run ./examples/billing
//	for i in 1 2 3 4; do curl -u ann: http://127.0.0.1:8081/report; done
//	curl -u ann: http://127.0.0.1:8081/usage
//
// Ann is billed on the 17th in Berlin, bob on the 31st in Auckland, or on the last day of a
// shorter month. Eve has not paid, and joe has no limit. When a customer's day, zone or plan
// changes, give the customer another plan with the same subject: usage stays, and the month
// that has begun keeps its end.
package main

import (
	"cmp"
	"fmt"
	"net/http"
	"time"
	_ "time/tzdata" // for systems without time zones

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/examples/internal/demo"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// customer is what a database would have.
type customer struct {
	zone *time.Location
	plan *ratelimit.Plan
}

func main() { demo.Serve(newHandler()) }

func newHandler() (http.Handler, error) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		return nil, err
	}
	auckland, err := time.LoadLocation("Pacific/Auckland")
	if err != nil {
		return nil, err
	}
	customers := map[string]customer{
		"ann": {berlin, basic(17, berlin)},
		"bob": {auckland, basic(31, auckland)},
		"eve": {berlin, ratelimit.SuspendedPlan("unpaid")},
		"joe": {time.UTC, ratelimit.UnlimitedPlan("staff")},
	}
	identify := func(r *http.Request) (ratelimit.Caller, error) { // a service would check a key first
		name, _, _ := r.BasicAuth()
		c, ok := customers[name]
		if !ok {
			return ratelimit.Caller{}, apierror.New(http.StatusUnauthorized, "unknown_customer", "Send the name of a customer as the user of basic authentication.")
		}
		return ratelimit.Caller{Subject: "customer:" + name, Plan: c.plan}, nil
	}
	limiter, err := memory.New(memory.Options{})
	if err != nil {
		return nil, err
	}
	limited, err := limit.New(limiter, identify, limit.Options{})
	if err != nil {
		return nil, err
	}
	errs := &apierror.Responder{}
	mux := http.NewServeMux()
	mux.Handle("GET /report", limited(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "a report") })))

	// The page is outside the limited, so that customers can see what they have used when
	// nothing is left. Peek charges nothing.
	mux.Handle("GET /usage", errs.Handle(func(w http.ResponseWriter, r *http.Request) error {
		caller, err := identify(r)
		if err != nil {
			return err
		}
		name, _, _ := r.BasicAuth()
		d, err := limiter.Peek(r.Context(), caller.Subject, caller.Plan)
		if err != nil {
			return err
		}
		fmt.Fprintln(w, caller.Plan)
		for i, q := range caller.Plan.Quotas() {
			most := cmp.Or(q.Burst(), q.Limit) // what can be left: of a smooth quota the burst
			until := time.Unix(d.States[i].Reset, 0).In(customers[name].zone)
			fmt.Fprintf(w, "%d of %d used, until %s\n", d.Used(i), most, until.Format("Mon 2 Jan 2006 15:04 MST"))
		}
		return nil
	}))
	return errs.Mux(mux), nil
}

// basic returns the plan of a customer with a billing day and a time zone.
func basic(day int, zone *time.Location) *ratelimit.Plan {
	return ratelimit.MustPlan("basic", ratelimit.DefaultPenalty(),
		ratelimit.PerMinute(60).Smooth(10), ratelimit.PerDay(3).In(zone), ratelimit.PerMonth(50).From(day).In(zone))
}
