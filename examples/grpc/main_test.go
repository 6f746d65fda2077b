package main

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

func TestGRPC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // begins at midnight, UTC
		conn, key := dial(t)
		var out strings.Builder
		call(&out, conn, key)
		const want = `rpc error: code = Unauthenticated desc = No API key was sent. Send it as Authorization: Bearer <API key>.
SERVING, 1 of 2 left
SERVING, 0 of 2 left
SERVING, 1 of 2 left
SERVING, 0 of 2 left
SERVING, 0 of 5 left
rpc error: code = ResourceExhausted desc = You have reached the limit of 5 requests per day. Wait as long as Retry-After says. More than 10 further requests before then may get you banned.
retry in 23h59m58s
`
		if out.String() != want {
			t.Errorf("the client prints\n%s\nwant\n%s", &out, want)
		}
	})
}

func TestFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // begins at midnight, UTC
		conn, key := dial(t)
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+key)
		var header, trailer metadata.MD // those of a call that fails are in the trailer
		_, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, new(grpc_health_v1.HealthCheckRequest),
			grpc.Header(&header), grpc.Trailer(&trailer))
		if err != nil {
			t.Error(err)
		}
		ratelimittest.CheckHeaders(t, http.Header(metadata.Join(header, trailer)), ratelimittest.Fields{Limit: 2, Remaining: 1})
	})
}

// dial returns a client of a server without a network, and an API key.
func dial(t *testing.T) (*grpc.ClientConn, string) {
	server, key, err := newServer()
	testcheck.NoError(t, err)
	listener := bufconn.Listen(1 << 16)
	served := make(chan error)
	go func() { served <- server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:///demo", append(clientOptions,
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))...)
	testcheck.NoError(t, err)
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return conn, key
}
