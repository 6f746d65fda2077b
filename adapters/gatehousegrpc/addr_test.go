package gatehousegrpc_test

import (
	"net"
	"net/netip"
	"testing"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/animalstore/gatehouse/adapters/gatehousegrpc"
	"github.com/animalstore/gatehouse/middleware/clientip"
)

// A call without an address, or with one that has no IP, comes from the zero address.
func TestPeerAddrOfNoAddress(t *testing.T) {
	for _, from := range []net.Addr{nil, (*net.TCPAddr)(nil), &net.UnixAddr{Name: "/run/pets", Net: "unix"}} {
		if got := gatehousegrpc.PeerAddr(peer.NewContext(t.Context(), &peer.Peer{Addr: from})); got.IsValid() {
			t.Errorf("%v: %v, want none", from, got)
		}
	}
}

// The address in the metadata counts if a trusted proxy has put it there.
func TestClientAddr(t *testing.T) {
	source, err := clientip.FromXForwardedFor([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	if err != nil {
		t.Fatal(err)
	}
	for from, want := range map[string]string{"10.0.0.1": "203.0.113.9", "192.0.2.1": "192.0.2.1"} {
		ctx := peer.NewContext(t.Context(), &peer.Peer{Addr: &net.TCPAddr{IP: net.ParseIP(from), Port: 4711}})
		ctx = metadata.NewIncomingContext(ctx, metadata.Pairs("x-forwarded-for", "6.6.6.6", "x-forwarded-for", "203.0.113.9, 10.0.0.2"))
		if got := gatehousegrpc.ClientAddr(ctx, source).String(); got != want {
			t.Errorf("a call from %s is one of %s, want %s", from, got, want)
		}
		if got := gatehousegrpc.ClientAddr(ctx, clientip.FromRemoteAddr()).String(); got != from {
			t.Errorf("without proxies, a call from %s is one of %s", from, got)
		}
	}
	if got := gatehousegrpc.ClientAddr(t.Context(), source); got.IsValid() {
		t.Errorf("a call without a peer is one of %s", got)
	}
}
