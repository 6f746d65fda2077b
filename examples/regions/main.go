// Regions is a service in two regions. Each has an engine of its own, so that no request waits
// for the other region, and tells the other one ten times a second what it has charged.
//
//	go run ./examples/regions
//	for i in 1 2 3; do curl -u ann: http://127.0.0.1:8081/eu/report; curl -u ann: http://127.0.0.1:8081/us/report; sleep 1; done
//
// Exchange.go is what a service would copy. There, the engine of a region comes from package
// redislimit behind failover, and each process sends what it has charged itself. There, send is
// a request with a timeout to any process of the other region, on an address that clients
// cannot reach. Strikes and bans stay in their region. docs/ENGINES.md says how much can be
// admitted beyond a limit.
package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/animalstore/gatehouse/examples/internal/demo"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

var free = ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(5), ratelimit.PerDay(1000))

func main() { demo.Serve(newHandler(context.Background(), 100*time.Millisecond)) }

func newHandler(ctx context.Context, pause time.Duration) (http.Handler, error) {
	mux := http.NewServeMux()
	regions := map[string]*region{}
	for _, name := range []string{"eu", "us"} {
		limiter, err := memory.New(memory.Options{})
		if err != nil {
			return nil, err
		}
		regions[name] = &region{local: limiter, plans: map[string]*ratelimit.Plan{free.Name(): free}}
		limited, err := limit.New(regions[name], limit.Addresses{}.Identify(planOf), limit.Options{ChargeIf: limit.NotServerError})
		if err != nil {
			return nil, err
		}
		mux.Handle("GET /"+name+"/report", limited(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "report") })))
	}
	connect(ctx, pause, regions["eu"], regions["us"].add)
	connect(ctx, pause, regions["us"], regions["eu"].add)
	return mux, nil
}

// connect makes a region tell a peer what it charges, until ctx ends.
func connect(ctx context.Context, pause time.Duration, r *region, send func(context.Context, []usage) error) {
	p := &peer{send: send, used: map[windows]usage{}}
	r.peers = append(r.peers, p)
	go p.exchange(ctx, pause)
}

// planOf takes the word of the client for its name. A service would check a key first.
func planOf(r *http.Request) (string, *ratelimit.Plan, error) {
	user, _, _ := r.BasicAuth()
	return user, free, nil
}
