package gatehousegrpc_test

import (
	"context"
	"fmt"
	"log"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/animalstore/gatehouse/adapters/gatehousegrpc"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// Failed sign-ins alone are limited: two wrong passwords for a user in an hour.
func ExampleOptions_chargeIf() {
	plan := ratelimit.MustPlan("sign-in", ratelimit.Penalty{}, ratelimit.PerHour(2))
	limiter, err := memory.New(memory.Options{})
	if err != nil {
		log.Fatal(err)
	}
	identify := func(r *http.Request) (ratelimit.Caller, error) {
		user := r.Header["User"]
		if len(user) != 1 {
			return ratelimit.Caller{}, status.Error(codes.InvalidArgument, "send your name as user")
		}
		return ratelimit.Caller{Subject: "sign-in:" + user[0], Plan: plan}, nil
	}
	limit, _, err := gatehousegrpc.New(limiter, identify, gatehousegrpc.Options{
		ChargeIf: func(_ *http.Request, err error) bool { return status.Code(err) == codes.Unauthenticated },
	})
	if err != nil {
		log.Fatal(err)
	}
	signIn := func(_ context.Context, password any) (any, error) {
		if password != "mellon" {
			return nil, status.Error(codes.Unauthenticated, "wrong password")
		}
		return "welcome", nil
	}

	// This is what a server does that has grpc.ChainUnaryInterceptor(limit).
	ctx := metadata.NewIncomingContext(context.Background(), metadata.Pairs("user", "ann"))
	for _, password := range []string{"mellon", "friend", "mellon", "enter", "mellon"} {
		_, err := limit(ctx, password, &grpc.UnaryServerInfo{FullMethod: "/pets.v1.Users/SignIn"}, signIn)
		fmt.Println(password, status.Code(err))
	}
	// Output:
	// mellon OK
	// friend Unauthenticated
	// mellon OK
	// enter Unauthenticated
	// mellon ResourceExhausted
}
