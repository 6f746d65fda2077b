package clientip

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sort"
	"strings"
)

// ParsePrefixes reads a list of networks such as "10.0.0.0/8" and "2001:db8::/32"
// from a configuration. A single address is a network of its own. The error names the
// text that is wrong. The constructors check that a prefix can be trusted.
func ParsePrefixes(texts []string) ([]netip.Prefix, error) {
	prefixes := make([]netip.Prefix, 0, len(texts))
	for _, text := range texts {
		prefix, err := parsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("clientip: %q must be a network such as 10.0.0.0/8 or an address", text)
		}
		prefixes = append(prefixes, prefix)
	}
	return prefixes, nil
}

func parsePrefix(text string) (netip.Prefix, error) {
	if strings.Contains(text, "/") {
		return netip.ParsePrefix(text)
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, err
	}
	if addr.Zone() != "" {
		return netip.Prefix{}, errors.New("address with a zone")
	}
	return netip.PrefixFrom(addr, addr.BitLen()), nil
}

// A prefixSet is a sorted list of prefixes of which no two overlap, so that one
// binary search covers the hundreds of prefixes of a content delivery network.
type prefixSet []netip.Prefix

func newPrefixSet(prefixes []netip.Prefix) (prefixSet, error) {
	if len(prefixes) == 0 {
		return nil, errors.New("none given; without a proxy use FromRemoteAddr")
	}
	for _, p := range prefixes {
		if err := checkPrefix(p); err != nil {
			return nil, err
		}
	}
	sorted := slices.Clone(prefixes)
	slices.SortFunc(sorted, netip.Prefix.Compare)
	// Prefixes nest or are apart, and the wider of two that nest comes first.
	var set prefixSet
	for _, p := range sorted {
		if len(set) == 0 || !set[len(set)-1].Overlaps(p) {
			set = append(set, p)
		}
	}
	return set, nil
}

func checkPrefix(p netip.Prefix) error {
	switch {
	case !p.IsValid():
		return errors.New("the zero prefix is not valid")
	case p.Addr().Is4In6():
		return fmt.Errorf("%v is IPv4 written as IPv6, which matches no address: write it as IPv4", p)
	case p.Bits() == 0:
		return fmt.Errorf("%v covers every address, so that any client could claim any address", p)
	case p != p.Masked():
		return fmt.Errorf("%v has bits set beyond its length: write %v, or %v/%d for the one address",
			p, p.Masked(), p.Addr(), p.Addr().BitLen())
	}
	return nil
}

// contains reports whether a normal address is in one of the prefixes.
func (set prefixSet) contains(addr netip.Addr) bool {
	after := sort.Search(len(set), func(i int) bool { return addr.Less(set[i].Addr()) })
	return after > 0 && set[after-1].Contains(addr)
}
