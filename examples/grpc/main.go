// Grpc is a gRPC server with API keys and two limits, 2 calls a second and 5 a day. A client
// calls it without a key, and then with it until the day is used up. Its retry policy waits as
// the server asks.
//
//	go run ./examples/grpc
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"os"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

func main() {
	server, key, err := newServer()
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() { log.Fatal(server.Serve(listener)) }()
	conn, err := grpc.NewClient(listener.Addr().String(), clientOptions...)
	if err != nil {
		log.Fatal(err)
	}
	call(os.Stdout, conn, key)
}

// The retry policy has nothing of Gatehouse in it. Its backoff is not used when the
// server says how long to wait.
var clientOptions = []grpc.DialOption{
	grpc.WithTransportCredentials(insecure.NewCredentials()),
	grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "retryPolicy": {
		"maxAttempts": 3, "initialBackoff": "1s", "maxBackoff": "10s", "backoffMultiplier": 2,
		"retryableStatusCodes": ["RESOURCE_EXHAUSTED", "UNAVAILABLE"]}}]}`),
}

// call asks for the health of the server without a key, and with it until the limit of
// the day is reached.
func call(out io.Writer, conn grpc.ClientConnInterface, key string) {
	client := grpc_health_v1.NewHealthClient(conn)
	_, err := client.Check(context.Background(), new(grpc_health_v1.HealthCheckRequest))
	fmt.Fprintln(out, err)
	ctx := metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer "+key)
	for {
		var header metadata.MD
		health, err := client.Check(ctx, new(grpc_health_v1.HealthCheckRequest), grpc.Header(&header))
		if err == nil {
			fmt.Fprintf(out, "%v, %s of %s left\n", health.Status, header["x-ratelimit-remaining"][0], header["x-ratelimit-limit"][0])
			continue
		}
		fmt.Fprintln(out, err)
		for _, d := range status.Convert(err).Details() {
			if info, ok := d.(*errdetails.RetryInfo); ok {
				fmt.Fprintln(out, "retry in", info.RetryDelay.AsDuration())
			}
		}
		return
	}
}
