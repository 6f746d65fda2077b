package gatehousegrpc_test

import (
	"context"
	"log"

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
	engine, err := memory.New(memory.Options{})
	if err != nil {
		log.Fatal(err)
	}
	identify := func(ctx context.Context, method string) (ratelimit.Caller, error) {
		if method == "/grpc.health.v1.Health/Check" {
			return ratelimit.Caller{Subject: "health", Plan: unlimited}, nil
		}
		network := clientip.NetworkSubject(gatehousegrpc.PeerAddr(ctx))
		return ratelimit.Caller{Subject: network, Plan: plan, Kind: ratelimit.KindNetwork}, nil
	}
	unary, err := gatehousegrpc.Unary(engine, identify, gatehousegrpc.Options{})
	if err != nil {
		log.Fatal(err)
	}
	stream, err := gatehousegrpc.Stream(engine, identify, gatehousegrpc.Options{})
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(unary), grpc.ChainStreamInterceptor(stream))
	server.Stop()
	// Output:
}
