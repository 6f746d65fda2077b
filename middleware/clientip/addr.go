package clientip

import (
	"net/netip"
	"strconv"
	"strings"
)

// parseAddr reads an address as connections and proxies write it: 192.0.2.1,
// 192.0.2.1:443, 2001:db8::1, [2001:db8::1], [2001:db8::1]:443, and IPv6 with a
// zone. The result is normal: IPv4 is not mapped into IPv6, and there is no
// zone.
//
// [netip.ParseAddrPort] requires a port, and keeps every zone that a client sends in a
// table of the process.
func parseAddr(s string) (netip.Addr, bool) {
	host := s
	switch {
	case strings.HasPrefix(s, "["):
		end := strings.IndexByte(s, ']')
		if end < 0 || !isPortSuffix(s[end+1:]) {
			return netip.Addr{}, false
		}
		// IPv4 is never in brackets (RFC 3986 section 3.2.2).
		if host = s[1:end]; strings.IndexByte(host, ':') < 0 {
			return netip.Addr{}, false
		}
	case strings.Count(s, ":") == 1:
		colon := strings.IndexByte(s, ':')
		if !isPortSuffix(s[colon:]) {
			return netip.Addr{}, false
		}
		host = s[:colon]
	}
	if percent := strings.IndexByte(host, '%'); percent >= 0 {
		// Only IPv6 has zones, and a zone is not empty (RFC 4007 section 11.2).
		if percent == len(host)-1 || strings.IndexByte(host[:percent], ':') < 0 {
			return netip.Addr{}, false
		}
		host = host[:percent]
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}, false
	}
	return addr.Unmap(), true
}

// isPortSuffix reports whether s is empty or a colon and a port.
func isPortSuffix(s string) bool {
	if s == "" {
		return true
	}
	if s[0] != ':' || len(s) > 6 {
		return false
	}
	_, err := strconv.ParseUint(s[1:], 10, 16)
	return err == nil
}

// trimOWS removes optional white space (RFC 9110 section 5.6.3).
func trimOWS(s string) string {
	return strings.Trim(s, " \t")
}

// networkBits6 is the length of the prefix that every IPv6 subscriber gets at least
// (RFC 6177 section 2).
const networkBits6 = 64

const (
	subjectPrefix  = "network:"
	unknownSubject = subjectPrefix + "unknown"
)

// NAT64 translators write the address of an IPv4 host into an IPv6 address.
var (
	nat64 = [4]byte{0x00, 0x64, 0xff, 0x9b} // both prefixes begin with it
	// The last 32 bits are the IPv4 address (RFC 6052 sections 2.1 and 2.2).
	wellKnownNAT64 = netip.MustParsePrefix("64:ff9b::/96")
	// The IPv4 address is somewhere in the last 80 bits, depending on the length
	// of the prefix that the operator chose (RFC 8215, RFC 6052 section 2.2).
	localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48")
)

// Network returns the network that a client at addr is counted for: the address
// itself (/32) for IPv4, the /64 around it for IPv6. A mapped address counts as IPv4,
// and a zone is ignored. The network of the zero address is the zero prefix.
//
// An IPv4 client behind a NAT64 translator counts by itself. An address in
// 64:ff9b::/96 counts as the IPv4 address in it. An address in 64:ff9b:1::/48 has the
// IPv4 address at an unknown place, and counts by the whole address (/128), which
// differs for each IPv4 address. Other NAT64 prefixes cannot be told from ordinary
// IPv6.
func Network(addr netip.Addr) netip.Prefix { return networkOf(addr, networkBits6) }

// networkOf is [Network] with an IPv6 prefix of bits.
func networkOf(addr netip.Addr, bits int) netip.Prefix {
	addr = addr.Unmap()
	if addr.Is4() {
		bits = addr.BitLen()
	} else if b := addr.As16(); [4]byte(b[:4]) == nat64 {
		switch addr = addr.WithZone(""); {
		case wellKnownNAT64.Contains(addr):
			addr, bits = netip.AddrFrom4([4]byte(b[12:])), 32
		case localNAT64.Contains(addr):
			bits = addr.BitLen()
		}
	}
	// It fails only for an address that is not valid.
	network, _ := addr.Prefix(bits)
	return network
}

// NetworkSubject returns the subject that the usage of a client without a key is counted for,
// and that is banned. It is "network:" and the text of [Network], such as
// "network:192.0.2.1/32" or "network:2001:db8:0:1::/64". The zero address gives
// "network:unknown". No subject of a key's owner is equal to it: those begin with "owner:"
// (apikey.OwnerSubject).
func NetworkSubject(addr netip.Addr) string { return subjectOf(Network(addr)) }

func subjectOf(network netip.Prefix) string {
	if !network.IsValid() {
		return unknownSubject
	}
	var text [len(subjectPrefix) + len("2001:0db8:0000:0000:0000:0000:0000:0001/128")]byte
	return string(network.AppendTo(append(text[:0], subjectPrefix...)))
}
