package clientip

import "net/netip"

// networkBits6 is the length of the prefix that an IPv6 subscriber has to itself
// at least (RFC 6177 section 2).
const networkBits6 = 64

// unknown is the key of a client that has no IP address.
const unknown = "unknown"

// Network returns the network that a client at addr is counted under: the
// address itself (/32) for IPv4, the /64 around it for IPv6. A mapped address
// counts as IPv4, and a zone is ignored. The network of the zero address is the
// zero prefix.
func Network(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap()
	bits := networkBits6
	if addr.Is4() {
		bits = addr.BitLen()
	}
	// Its only error is that of an address that is not valid.
	network, _ := addr.Prefix(bits)
	return network
}

// Key returns the text of [Network], such as "192.0.2.1/32" or
// "2001:db8:0:1::/64", for use as the key of a limit or a ban. The key of the
// zero address is "unknown". Making the string is one allocation.
func Key(addr netip.Addr) string {
	network := Network(addr)
	if !network.IsValid() {
		return unknown
	}
	var text [len("2001:0db8:0000:0001::/64") + 16]byte
	return string(network.AppendTo(text[:0]))
}
