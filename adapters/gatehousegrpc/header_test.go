package gatehousegrpc_test

import (
	"net"
	"net/netip"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/animalstore/gatehouse/adapters/gatehousegrpc"
	"github.com/animalstore/gatehouse/ratelimit"
)

// A handler that sends its header early sends the fields with it.
func TestHeaderIsSentEarly(t *testing.T) {
	limits := limited(t, newClock().engine(t), caller(ratelimit.Caller{Subject: "ann", Plan: two}), gatehousegrpc.Options{})
	early := func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
		if err := ss.SendHeader(metadata.Pairs("own", "1")); err != nil {
			t.Error(err)
		}
		return h(srv, ss)
	}
	conn := start(t, same, append(limits, grpc.ChainStreamInterceptor(early))...)
	a, _ := stream(t.Context(), conn, 1)
	if got := a.header.Get("x-ratelimit-remaining"); len(got) != 1 || got[0] != "1" || len(a.header.Get("own")) != 1 {
		t.Errorf("header %v, trailer %v, want x-ratelimit-remaining and own in the header", a.header, a.trailer)
	}
}

// text is the address of a server that is an http.Handler.
type text string

func (text) Network() string  { return "tcp" }
func (a text) String() string { return string(a) }

func TestPeerAddr(t *testing.T) {
	for _, c := range []struct {
		addr net.Addr
		want string
	}{
		{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 9}, "192.0.2.1"},
		{text("192.0.2.1:9"), "192.0.2.1"},
		{text("[::ffff:192.0.2.1]:9"), "192.0.2.1"},
		{text("[2001:db8::1]:9"), "2001:db8::1"},
		{text("bufconn"), "invalid IP"},
		{&net.UnixAddr{Name: "/run/x", Net: "unix"}, "invalid IP"},
	} {
		ctx := peer.NewContext(t.Context(), &peer.Peer{Addr: c.addr})
		if got := gatehousegrpc.PeerAddr(ctx); got.String() != c.want {
			t.Errorf("PeerAddr of %v is %v, want %s", c.addr, got, c.want)
		}
	}
	if got := gatehousegrpc.PeerAddr(t.Context()); got != (netip.Addr{}) {
		t.Errorf("PeerAddr without a peer is %v", got)
	}
}
