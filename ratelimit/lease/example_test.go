package lease_test

import (
	"context"
	"fmt"
	"log"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/lease"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// Two processes share a limit of 1000. In a service the engine is that of
// ratelimit/redislimit.
func Example() {
	shared, err := memory.New(memory.Options{})
	if err != nil {
		log.Fatal(err)
	}
	plan := ratelimit.MustPlan("free", ratelimit.Penalty{}, ratelimit.PerDay(1000))
	for range 2 {
		process, err := lease.New(shared)
		if err != nil {
			log.Fatal(err)
		}
		for range 400 {
			d, err := process.Take(context.Background(), "user:ann", plan, 1)
			if err != nil || !d.Allowed() {
				log.Fatal(d.Outcome, err)
			}
		}
		process.Close() // gives back what it has not used
	}
	d, err := shared.Peek(context.Background(), "user:ann", plan)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(d.Remaining(), "remain")
	// Output:
	// 200 remain
}
