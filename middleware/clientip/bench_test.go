package clientip_test

import (
	"fmt"
	"testing"

	"github.com/animalstore/gatehouse/middleware/clientip"
)

func BenchmarkAddr(b *testing.B) {
	var many []string
	for i := range 200 {
		many = append(many, fmt.Sprintf("10.0.%d.0/24", i))
	}
	behind := func(trusted ...string) *clientip.Source {
		return must(clientip.FromXForwardedFor(prefixes(trusted...)))
	}
	for _, bb := range []struct {
		name   string
		source *clientip.Source
		remote string
		lines  []string
	}{
		{"direct", clientip.FromRemoteAddr(), "192.0.2.1:4711", nil},
		{"direct IPv6", clientip.FromRemoteAddr(), "[2001:db8::1]:4711", nil},
		{"one proxy", behind("10.0.0.0/8"), "10.0.0.1:4711", []string{"203.0.113.9"}},
		{"three proxies of 200 networks", behind(many...), "10.0.0.1:4711", []string{"203.0.113.9, 10.0.7.1, 10.0.199.1"}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			r := request(bb.remote, "X-Forwarded-For", bb.lines...)
			b.ReportAllocs()
			for b.Loop() {
				bb.source.Addr(r)
			}
		})
	}
}

func TestAddrDoesNotAllocate(t *testing.T) {
	source := must(clientip.FromXForwardedFor(prefixes("10.0.0.0/8")))
	r := request("10.0.0.1:4711", "X-Forwarded-For", "[2001:db8::9%eth0]:443, 10.0.0.2")
	if got := testing.AllocsPerRun(100, func() { source.Addr(r) }); got != 0 {
		t.Errorf("Addr allocates %v times, want none", got)
	}
}
