package clientip_test

import (
	"net/netip"
	"testing"

	"github.com/animalstore/gatehouse/middleware/clientip"
)

func TestNetworkAndSubject(t *testing.T) {
	tests := []struct {
		name string
		addr netip.Addr
		want string
	}{
		{"IPv4", netip.MustParseAddr("192.0.2.1"), "192.0.2.1/32"},
		{"IPv6", netip.MustParseAddr("2001:db8:0:1:2:3:4:5"), "2001:db8:0:1::/64"},
		{"mapped", netip.MustParseAddr("::ffff:192.0.2.1"), "192.0.2.1/32"},
		{"NAT64", netip.MustParseAddr("64:ff9b::192.0.2.1"), "192.0.2.1/32"},
		{"another client behind the same NAT64", netip.MustParseAddr("64:ff9b::192.0.2.2"), "192.0.2.2/32"},
		{"NAT64 with a zone", netip.MustParseAddr("64:ff9b::192.0.2.1%eth0"), "192.0.2.1/32"},
		{"beside the NAT64 prefix", netip.MustParseAddr("64:ff9b::1:192.0.2.1"), "64:ff9b::/64"},
		{"local NAT64, /96", netip.MustParseAddr("64:ff9b:1::192.0.2.1"), "64:ff9b:1::c000:201/128"},
		{"local NAT64, /48", netip.MustParseAddr("64:ff9b:1:c000:2:100::"), "64:ff9b:1:c000:2:100::/128"},
		{"beside the local NAT64 prefix", netip.MustParseAddr("64:ff9b:2::1"), "64:ff9b:2::/64"},
		{"zone", netip.MustParseAddr("fe80::1%eth0"), "fe80::/64"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := clientip.Network(tt.addr).String(); got != tt.want {
				t.Errorf("Network(%v) = %s, want %s", tt.addr, got, tt.want)
			}
			if got := clientip.NetworkSubject(tt.addr); got != "network:"+tt.want {
				t.Errorf("NetworkSubject(%v) = %q, want %q", tt.addr, got, "network:"+tt.want)
			}
		})
	}
	if got := clientip.Network(netip.Addr{}); got != (netip.Prefix{}) {
		t.Errorf("Network of no address = %v, want the zero prefix", got)
	}
	if got := clientip.NetworkSubject(netip.Addr{}); got != "network:unknown" {
		t.Errorf("NetworkSubject of no address = %q, want network:unknown", got)
	}
}
