package clientip_test

import (
	"net/netip"
	"testing"

	"github.com/animalstore/gatehouse/middleware/clientip"
)

// AddrFrom finds the address that Addr finds in a request, and does not look at the header
// of a peer that is not trusted.
func TestAddrFrom(t *testing.T) {
	trusted := prefixes(t, "10.0.0.0/8", "fe80::/64")
	list, err := clientip.FromXForwardedFor(trusted)
	if err != nil {
		t.Fatal(err)
	}
	single, err := clientip.FromHeader("x-real-ip", trusted)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		source *clientip.Source
		field  string
		peer   string
		lines  []string
		want   string
	}{
		{list, "X-Forwarded-For", "10.0.0.1", []string{"6.6.6.6", "203.0.113.9, 10.0.0.2"}, "203.0.113.9"},
		{list, "X-Forwarded-For", "::ffff:10.0.0.1", []string{"203.0.113.9"}, "203.0.113.9"},
		{list, "X-Forwarded-For", "fe80::1%eth0", []string{"203.0.113.9"}, "203.0.113.9"},
		{list, "X-Forwarded-For", "10.0.0.1", nil, "10.0.0.1"},
		{list, "X-Forwarded-For", "10.0.0.1", []string{"unknown"}, "10.0.0.1"},
		{list, "X-Forwarded-For", "192.0.2.1", []string{"203.0.113.9"}, "192.0.2.1"},
		{list, "X-Forwarded-For", "", []string{"203.0.113.9"}, ""},
		{single, "X-Real-Ip", "10.0.0.1", []string{"203.0.113.9"}, "203.0.113.9"},
		{single, "X-Real-Ip", "10.0.0.1", []string{"6.6.6.6", "203.0.113.9"}, "10.0.0.1"},
		{clientip.FromRemoteAddr(), "X-Real-Ip", "::ffff:192.0.2.1", []string{"203.0.113.9"}, "192.0.2.1"},
	} {
		var peer netip.Addr
		if test.peer != "" {
			peer = netip.MustParseAddr(test.peer)
		}
		asked := false
		got := text(test.source.AddrFrom(peer, func(name string) []string {
			if asked = true; name != test.field {
				t.Errorf("the field asked for is %s, want %s", name, test.field)
			}
			return test.lines
		}))
		if got != test.want {
			t.Errorf("peer %s sends %s %q: the client is %q, want %q", test.peer, test.field, test.lines, got, test.want)
		}
		if from := text(test.source.Addr(request(test.peer, test.field, test.lines...))); from != got {
			t.Errorf("peer %s sends %s %q: Addr finds %q and AddrFrom %q", test.peer, test.field, test.lines, from, got)
		}
		if asked && test.peer == "192.0.2.1" {
			t.Errorf("AddrFrom has read the field of %s, which is not trusted", test.peer)
		}
	}
}
