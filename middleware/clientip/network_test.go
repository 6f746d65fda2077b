package clientip_test

import (
	"net/netip"
	"testing"

	"github.com/animalstore/gatehouse/middleware/clientip"
)

func TestNetworkAndKey(t *testing.T) {
	tests := []struct {
		name string
		addr netip.Addr
		want string
	}{
		{"IPv4", netip.MustParseAddr("192.0.2.1"), "192.0.2.1/32"},
		{"IPv6", netip.MustParseAddr("2001:db8:0:1:2:3:4:5"), "2001:db8:0:1::/64"},
		{"mapped", netip.MustParseAddr("::ffff:192.0.2.1"), "192.0.2.1/32"},
		{"zone", netip.MustParseAddr("fe80::1%eth0"), "fe80::/64"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := clientip.Network(tt.addr).String(); got != tt.want {
				t.Errorf("Network(%v) = %s, want %s", tt.addr, got, tt.want)
			}
			if got := clientip.Key(tt.addr); got != tt.want {
				t.Errorf("Key(%v) = %q, want %q", tt.addr, got, tt.want)
			}
		})
	}
	if got := clientip.Network(netip.Addr{}); got != (netip.Prefix{}) {
		t.Errorf("Network of no address = %v, want the zero prefix", got)
	}
	if got := clientip.Key(netip.Addr{}); got != "unknown" {
		t.Errorf("Key of no address = %q, want unknown", got)
	}
}
