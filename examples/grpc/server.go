package main

import (
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/animalstore/gatehouse/adapters/gatehousegrpc"
	"github.com/animalstore/gatehouse/examples/internal/demo"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

var (
	free   = ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerSecond(2), ratelimit.PerDay(5))
	guests = ratelimit.MustPlan("guests", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60))
)

// newServer returns a server and the key of ann.
func newServer() (*grpc.Server, string, error) {
	auth, keys, err := demo.NewKeys(nil, map[string]*ratelimit.Plan{"ann": free})
	if err != nil {
		return nil, "", err
	}
	limiter, err := memory.New(memory.Options{})
	if err != nil {
		return nil, "", err
	}
	identifyUnary, identifyStream := gatehousegrpc.Identify(auth)
	limitUnary, limitStream, err := gatehousegrpc.New(limiter, identify, gatehousegrpc.Options{ChargeIf: gatehousegrpc.NotServerError})
	if err != nil {
		return nil, "", err
	}
	requireUnary, requireStream := gatehousegrpc.Require(auth)
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(identifyUnary, limitUnary, requireUnary),
		grpc.ChainStreamInterceptor(identifyStream, limitStream, requireStream))
	// In place of a service of its own. Other servers let health checks pass without a key
	// and without a limit: go doc gatehousegrpc.Require says how.
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	return server, keys["ann"], nil
}

// identify counts a call for the owner of its key, and without a valid key for its network.
func identify(r *http.Request) (ratelimit.Caller, error) {
	if p, ok := bearer.FromContext[apikey.Principal](r.Context()); ok {
		return ratelimit.Caller{Subject: p.Subject, Plan: p.Plan, Kind: ratelimit.KindAPIKey}, nil
	}
	network := clientip.NetworkSubject(clientip.FromRemoteAddr().Addr(r))
	return ratelimit.Caller{Subject: network, Plan: guests, Kind: ratelimit.KindNetwork}, nil
}
