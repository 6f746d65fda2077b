package gatehousegrpc_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/test/bufconn"

	"github.com/animalstore/gatehouse/adapters/gatehousegrpc"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// sending counts the messages that a stream sends.
type sending struct {
	grpc.ServerStream
	messages int64
}

func (s *sending) SendMsg(m any) error {
	s.messages++
	return s.ServerStream.SendMsg(m)
}

// A stream reserves ten units when it opens. When it ends, it has cost one unit for each
// message.
func ExampleOptions_settle() {
	plan := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMonth(1000))
	limiter, err := memory.New(memory.Options{})
	if err != nil {
		log.Fatal(err)
	}
	identify := func(*http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: "user:ann", Plan: plan}, nil
	}
	_, limiting, err := gatehousegrpc.New(limiter, identify, gatehousegrpc.Options{Options: limit.Options{
		Cost:   func(*http.Request) int64 { return 10 },
		Settle: true,
	}})
	if err != nil {
		log.Fatal(err)
	}
	settle := func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		counted := &sending{ServerStream: ss}
		defer func() {
			if err := limit.FromContext(ss.Context()).Settle(ss.Context(), counted.messages); err != nil {
				log.Print(err)
			}
		}()
		return handler(srv, counted)
	}
	server := grpc.NewServer(grpc.ChainStreamInterceptor(limiting, settle))
	watched := health.NewServer()
	grpc_health_v1.RegisterHealthServer(server, watched)

	listener := bufconn.Listen(1 << 16)
	go func() { _ = server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:///health", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		log.Fatal(err)
	}
	ctx, hangUp := context.WithCancel(context.Background())
	stream, err := grpc_health_v1.NewHealthClient(conn).Watch(ctx, new(grpc_health_v1.HealthCheckRequest))
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		message, err := stream.Recv()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(message.Status)
		watched.Shutdown() // the status changes, and the stream sends it
	}
	hangUp()
	server.GracefulStop() // the stream has ended
	d, err := limiter.Peek(context.Background(), "user:ann", plan)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(d.Remaining(), "of", d.Limit(), "left")
	// Output:
	// SERVING
	// NOT_SERVING
	// 998 of 1000 left
}
