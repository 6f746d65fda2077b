package clientip

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/textproto"
	"strings"
)

// A Source tells the address of the client of a request. It is made by one of
// the constructors, which are named for what stands between the client and the
// service. It never changes, and any number of goroutines may use it. The zero
// Source is that of [FromRemoteAddr].
type Source struct {
	trusted prefixSet
	header  string // canonical name; "" reads the connection's address alone
	list    bool   // header is a list to which every proxy adds an address
}

// forwardedFor is the canonical name of the header field that every proxy adds
// its client's address to.
const forwardedFor = "X-Forwarded-For"

// FromRemoteAddr is for a service with no proxy in front of it: the client is
// whoever opened the connection, and no header is read.
func FromRemoteAddr() *Source {
	return &Source{}
}

// FromXForwardedFor is for a service behind one or more reverse proxies with
// addresses in trusted, each of which adds the address of its own client at the
// end of X-Forwarded-For.
//
// If the connection comes from a trusted address, the entries of all
// X-Forwarded-For lines, joined in order, are read from the right. Trusted
// addresses are skipped; the first other one is the client. Whatever stands to
// the left of it could have been written by anybody and is not looked at. If
// every entry is trusted, the client is the left-most: a request that began
// inside the trusted network. An entry that is no address, or is empty, ends
// the walk, and the client is the trusted address read last, that of the proxy
// that wrote the entry.
//
// An entry is an IPv4 or an IPv6 address, the latter also in brackets, each
// with or without a port.
//
// It returns an error if trusted is empty, or has a prefix that is not valid,
// covers all addresses, has bits set beyond its length (10.0.0.1/8), or writes
// IPv4 as IPv6 (::ffff:10.0.0.0/104).
func FromXForwardedFor(trusted []netip.Prefix) (*Source, error) {
	set, err := newPrefixSet(trusted)
	if err != nil {
		return nil, fmt.Errorf("clientip: trusted proxies: %w", err)
	}
	return &Source{trusted: set, header: forwardedFor, list: true}, nil
}

// FromHeader is for a service behind one reverse proxy, at an address in
// trusted, that puts the client's address alone into a header field of the given
// name, such as X-Real-IP or CF-Connecting-IP, and overwrites what the client
// sent under that name. Many proxies do not overwrite by themselves: check that
// yours does.
//
// The client is the address in the field, if the connection comes from a trusted
// address and the field is there on one line and holds one address. Otherwise it
// is the address of the connection.
//
// It returns an error if name is not a field name (RFC 9110 section 5.1) or is
// X-Forwarded-For, and for what [FromXForwardedFor] refuses.
func FromHeader(name string, trusted []netip.Prefix) (*Source, error) {
	if !isFieldName(name) {
		return nil, fmt.Errorf("clientip: %q is not a header field name", name)
	}
	canonical := textproto.CanonicalMIMEHeaderKey(name)
	if canonical == forwardedFor {
		return nil, fmt.Errorf("clientip: %s holds a list: use FromXForwardedFor", forwardedFor)
	}
	set, err := newPrefixSet(trusted)
	if err != nil {
		return nil, fmt.Errorf("clientip: trusted proxies: %w", err)
	}
	return &Source{trusted: set, header: canonical}, nil
}

// Addr returns the address of the client of r: an IPv4 address as such, also
// where it came mapped into IPv6, and never with a zone. It is the zero
// [netip.Addr] if the connection has no IP address.
//
// It does not allocate, unless a trusted proxy sent something that is no
// address.
func (s *Source) Addr(r *http.Request) netip.Addr {
	peer, ok := parseAddr(r.RemoteAddr)
	if !ok || s.header == "" || !s.trusted.contains(peer) {
		return peer
	}
	lines := r.Header[s.header]
	if s.list {
		return s.walk(peer, lines)
	}
	if len(lines) == 1 {
		if addr, ok := parseAddr(trimOWS(lines[0])); ok {
			return addr
		}
	}
	return peer
}

// walk reads the entries of lines from the right, starting with a trusted peer,
// until it finds one that is not trusted or not an address.
//
// An empty entry ends the walk like any other that is no address. RFC 9110
// section 5.6.1.2 would have a recipient skip it, but a proxy that did not know
// its client may have written it, and what stands further left would then be
// taken for that proxy's word.
func (s *Source) walk(peer netip.Addr, lines []string) netip.Addr {
	last := peer
	for i := len(lines) - 1; i >= 0; i-- {
		for line, more := lines[i], true; more; {
			comma := strings.LastIndexByte(line, ',')
			addr, ok := parseAddr(trimOWS(line[comma+1:]))
			if !ok {
				return last
			}
			if last = addr; !s.trusted.contains(addr) {
				return addr
			}
			if more = comma >= 0; more {
				line = line[:comma]
			}
		}
	}
	return last
}

// isFieldName reports whether name is a token (RFC 9110 section 5.6.2).
func isFieldName(name string) bool {
	for _, c := range []byte(name) {
		alnum := '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
		if !alnum && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return name != ""
}
