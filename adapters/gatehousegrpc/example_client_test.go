package gatehousegrpc_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/test/bufconn"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A client that keeps to the plan that it has at a server. Its calls wait for their turn
// before they are sent, in order, where concurrent calls with a retry policy alone would
// compete and run out of attempts.
func Example_client() {
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	listener := bufconn.Listen(1 << 16)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	plan := ratelimit.MustPlan("mine", ratelimit.Penalty{}, ratelimit.PerMinute(6).Smooth(2))
	limiter, err := memory.New(memory.Options{})
	if err != nil {
		log.Fatal(err)
	}
	waiter := ratelimit.NewWaiter(limiter)
	wait := func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if _, err := waiter.Wait(ctx, "server", plan, 1); err != nil {
			return err
		}
		return invoke(ctx, method, req, reply, conn, opts...)
	}
	conn, err := grpc.NewClient("passthrough:///health", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithChainUnaryInterceptor(wait))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	client := grpc_health_v1.NewHealthClient(conn)
	for range 3 {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		answer, err := client.Check(ctx, new(grpc_health_v1.HealthCheckRequest))
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			fmt.Println("no turn within five seconds") // known immediately
			continue
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(answer.Status)
	}
	// Output:
	// SERVING
	// SERVING
	// no turn within five seconds
}
