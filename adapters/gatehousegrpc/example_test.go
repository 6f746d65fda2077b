package gatehousegrpc_test

import (
	"log"
	"net/http"

	"google.golang.org/grpc"

	"github.com/animalstore/gatehouse/adapters/gatehousegrpc"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A server that allows each network 60 calls a minute.
func Example() {
	plan := ratelimit.MustPlan("guests", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60))
	unlimited := ratelimit.UnlimitedPlan("unlimited")
	limiter, err := memory.New(memory.Options{})
	if err != nil {
		log.Fatal(err)
	}
	identify := func(r *http.Request) (ratelimit.Caller, error) {
		if r.URL.Path == "/grpc.health.v1.Health/Check" {
			return ratelimit.Caller{Subject: "health", Plan: unlimited}, nil
		}
		network := clientip.NetworkSubject(clientip.FromRemoteAddr().Addr(r))
		return ratelimit.Caller{Subject: network, Plan: plan, Kind: ratelimit.KindNetwork}, nil
	}
	unary, stream, err := gatehousegrpc.New(limiter, identify, gatehousegrpc.Options{})
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(unary), grpc.ChainStreamInterceptor(stream))
	server.Stop()
	// Output:
}
