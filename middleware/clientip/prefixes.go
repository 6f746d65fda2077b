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

// Errors of [Source.Resolve], for [errors.Is].
var (
	// ErrUnreadable: a trusted proxy sent an entry that is not an address.
	ErrUnreadable = errors.New("clientip: entry is not an address")
	// ErrAbsent: a trusted proxy did not send the header.
	ErrAbsent = errors.New("clientip: no header from a trusted proxy")
)

// lastEntryFunc reads the last entry of a line: its text, the line before it, whether
// there is a comma between them, and the entry's address if it has one.
type lastEntryFunc func(line string) (entry, rest string, more bool, addr netip.Addr, ok bool)

func lastXForwardedFor(line string) (entry, rest string, more bool, addr netip.Addr, ok bool) {
	comma := strings.LastIndexByte(line, ',')
	if more = comma >= 0; more {
		rest = line[:comma]
	}
	entry = line[comma+1:]
	addr, ok = parseAddr(trimOWS(entry))
	return entry, rest, more, addr, ok
}

// rightmostUntrusted reads the entries of lines from the right, starting with a trusted
// peer, until it finds one that is not trusted or not an address.
//
// Reading also stops at an empty entry. RFC 9110 section 5.6.1.2 says that a recipient
// skips it, but a proxy that did not know its client may have written it, and the
// entries further left would then pass for that proxy's.
func (s *Source) rightmostUntrusted(peer netip.Addr, lines []string) (netip.Addr, error) {
	last := peer
	for i := len(lines) - 1; i >= 0; i-- {
		for line, more := lines[i], true; more; {
			var entry string
			var addr netip.Addr
			var ok bool
			if entry, line, more, addr, ok = s.last(line); !ok {
				return last, s.unreadable(entry)
			}
			if last = addr; !s.trusted.contains(addr) {
				return addr, nil
			}
		}
	}
	return last, nil
}

// unreadable quotes only the start of entry, which a client may have written.
func (s *Source) unreadable(entry string) error {
	return fmt.Errorf("%w: %s: %.64q", ErrUnreadable, s.header, trimOWS(entry))
}
