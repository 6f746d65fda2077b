package clientip

import (
	"net/netip"
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
	if s[0] != ':' || len(s) < 2 || len(s) > 6 {
		return false
	}
	port := 0
	for _, c := range []byte(s[1:]) {
		if c < '0' || c > '9' {
			return false
		}
		port = port*10 + int(c-'0')
	}
	return port <= 65535
}

// trimOWS removes optional white space (RFC 9110 section 5.6.3).
func trimOWS(s string) string {
	return strings.Trim(s, " \t")
}
