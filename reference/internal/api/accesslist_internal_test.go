package api

import (
	"math/rand/v2"
	"net/netip"
	"testing"
)

// randomAddr returns an address in a small range, so that prefixes nest often.
func randomAddr(r *rand.Rand) netip.Addr {
	if r.IntN(2) == 0 {
		return netip.AddrFrom4([4]byte{192, 0, byte(r.IntN(8)), byte(r.IntN(256))})
	}
	return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 4: byte(r.IntN(4)), 15: byte(r.IntN(256))})
}

func randomNetworks(r *rand.Rand, n int) []netip.Prefix {
	list := make([]netip.Prefix, n)
	for i := range list {
		addr := randomAddr(r)
		list[i] = netip.PrefixFrom(addr, addr.BitLen()-r.IntN(14)).Masked()
	}
	return list
}

// The table finds what a search through the whole list finds.
func TestAccessTableFindsEachAddress(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		list := randomNetworks(r, 1+r.IntN(20))
		table, err := newAccessTable(AccessList{Networks: list})
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			addr, want := randomAddr(r), false
			for _, p := range list {
				want = want || p.Contains(addr)
			}
			if got := table.hasAddr(addr); got != want {
				t.Fatalf("seed %d: hasAddr(%v) = %t in %v, want %t", seed, addr, got, list, want)
			}
		}
	}
}

func BenchmarkAccessTable(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	list := make([]netip.Prefix, 10_000)
	for i := range list {
		list[i] = netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32()), 0}), 24)
	}
	table, err := newAccessTable(AccessList{Networks: list})
	if err != nil {
		b.Fatal(err)
	}
	addr := netip.MustParseAddr("203.0.113.7")
	b.ReportAllocs()
	for b.Loop() {
		table.hasAddr(addr)
	}
}
