package gatehouseconnect_test

import (
	"net/http"
	"net/netip"
	"testing"

	"connectrpc.com/connect"

	"github.com/animalstore/gatehouse/adapters/gatehouseconnect"
	"github.com/animalstore/gatehouse/middleware/clientip"
)

// The address in the header counts if a trusted proxy has put it there.
func TestClientAddr(t *testing.T) {
	source, err := clientip.FromXForwardedFor([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	if err != nil {
		t.Fatal(err)
	}
	for from, want := range map[string]string{"10.0.0.1": "203.0.113.9", "192.0.2.1": "192.0.2.1"} {
		call := gatehouseconnect.Call{
			Peer:   connect.Peer{Addr: from + ":4711"},
			Header: http.Header{"X-Forwarded-For": {"6.6.6.6", "203.0.113.9, 10.0.0.2"}},
		}
		if got := call.ClientAddr(source).String(); got != want {
			t.Errorf("a call from %s is one of %s, want %s", from, got, want)
		}
		if got := call.ClientAddr(clientip.FromRemoteAddr()).String(); got != from {
			t.Errorf("without proxies, a call from %s is one of %s", from, got)
		}
	}
}
