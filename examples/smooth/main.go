// Smooth shows what the same client sees of 60 requests per minute in a fixed window, and
// of the same rate with smooth limits: without a burst at the boundary of two windows.
//
//	go run ./examples/smooth
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"text/tabwriter"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

var (
	fixed  = ratelimit.MustPlan("fixed", ratelimit.Penalty{}, ratelimit.PerMinute(60))
	smooth = ratelimit.MustPlan("smooth", ratelimit.Penalty{}, ratelimit.PerMinute(60).Smooth(10))
	both   = ratelimit.MustPlan("both", ratelimit.Penalty{}, ratelimit.PerMinute(60).Smooth(10), ratelimit.PerHour(25))
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run lets a client of each plan send 100 requests at once, again and again, on a clock of
// its own.
func run(out io.Writer) error {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	engine, err := memory.New(memory.Options{Now: func() time.Time { return now }})
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "time\t60/minute\t60/minute smooth 10\tand 25/hour")
	minute := now
	for _, second := range []int{58, 59, 60, 61, 90, 91, 92} {
		now = minute.Add(time.Duration(second) * time.Second)
		fmt.Fprint(table, now.Format(time.TimeOnly))
		for _, plan := range []*ratelimit.Plan{fixed, smooth, both} {
			admitted := 0
			var retry time.Duration
			for range 100 {
				d, err := engine.Take(context.Background(), "client of "+plan.Name(), plan, 1)
				if err != nil {
					return err
				}
				if d.Allowed() {
					admitted++
				}
				retry = d.RetryAfter
			}
			fmt.Fprintf(table, "\t%2d, retry after %v", admitted, retry)
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}
