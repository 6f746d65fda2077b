package main

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
)

func TestGRPC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // begins at midnight
		server, key, err := newServer()
		if err != nil {
			t.Fatal(err)
		}
		listener := bufconn.Listen(1 << 16)
		served := make(chan error)
		go func() { served <- server.Serve(listener) }()
		dial := func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }
		conn, err := grpc.NewClient("passthrough:///demo", append(clientOptions, grpc.WithContextDialer(dial))...)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		call(&out, conn, key)
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		const want = `rpc error: code = Unauthenticated desc = No API key was sent. Send it as Authorization: Bearer <API key>.
SERVING, 1 of 2 left
SERVING, 0 of 2 left
SERVING, 1 of 2 left
SERVING, 0 of 2 left
SERVING, 0 of 5 left
rpc error: code = ResourceExhausted desc = You have reached the limit of 5 requests per day. Wait as long as Retry-After says. More than 10 further requests before then will get you banned.
retry in 23h59m58s
`
		if out.String() != want {
			t.Errorf("the client prints\n%s\nwant\n%s", &out, want)
		}
	})
}
