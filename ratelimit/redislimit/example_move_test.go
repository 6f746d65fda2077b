package redislimit_test

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// A service moves from the engine in its memory to Redis. Before it serves, it adds what
// its customers have used, and bans again those that are banned.
func Example_move() {
	ctx := context.Background()
	server, err := miniredis.Run() // in place of a real one
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	noon := time.Date(2026, time.March, 1, 12, 0, 0, 500_000_000, time.UTC)
	server.SetTime(noon)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	to, err := redislimit.New(client, redislimit.Options{})
	if err != nil {
		log.Fatal(err)
	}
	from, err := memory.New(memory.Options{Now: func() time.Time { return noon }}) // in a service: loaded
	if err != nil {
		log.Fatal(err)
	}
	plan := ratelimit.MustPlan("pro", ratelimit.DefaultPenalty(), ratelimit.PerMinute(600).Smooth(100), ratelimit.PerMonth(10_000).From(17))
	if _, err := from.Take(ctx, "customer:17", plan, 70); err != nil {
		log.Fatal(err)
	}
	if err := from.Ban(ctx, "customer:18", fixedwindow.MaxLength, ""); err != nil {
		log.Fatal(err)
	}

	// If the move is interrupted and repeated within ten minutes, the same id adds nothing twice.
	const id = "move of web-1"
	for _, subject := range []string{"customer:17", "customer:18"} { // all that the service knows
		if err := moveUsage(ctx, from, to, id, subject, plan); err != nil {
			log.Fatal(err)
		}
	}
	bans, err := from.Bans(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, b := range bans {
		left := b.Ends.Sub(noon) // in a service: time.Until(b.Ends)
		if left <= 0 {
			continue // it has ended meanwhile
		}
		// The end of a ban is rounded up, so that the longest one seems to be too long.
		if err := to.Ban(ctx, b.Subject, min(left, fixedwindow.MaxLength), b.Reason); err != nil {
			log.Fatal(err)
		}
	}

	for _, subject := range []string{"customer:17", "customer:18"} {
		d, err := to.Peek(ctx, subject, plan)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %v, %d at once, %d this month\n", subject, d.Outcome, d.States[0].Remaining, d.States[1].Remaining)
	}
	// Output:
	// customer:17: allowed, 30 at once, 9930 this month
	// customer:18: banned, 100 at once, 10000 this month
}

// moveUsage adds what subject has used to another engine.
func moveUsage(ctx context.Context, from engine.Peeker, to engine.Adjuster, id, subject string, plan *ratelimit.Plan) error {
	d, err := from.Peek(ctx, subject, plan)
	if err != nil {
		return err
	}
	for i, q := range plan.Quotas() {
		moved := ratelimit.Decision{Outcome: ratelimit.Allowed, Plan: plan, Time: d.Time}
		moved.States[i] = d.States[i] // this quota alone
		used := cmp.Or(q.Burst(), q.Limit) - d.States[i].Remaining
		if err := to.Adjust(ctx, subject, &moved, used, fmt.Sprint(id, " ", i)); err != nil {
			return err
		}
	}
	return nil
}
