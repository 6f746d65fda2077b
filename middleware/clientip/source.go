package clientip

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/textproto"
	"slices"
	"strings"
)

// A Source finds the address of the client of a request. The constructors are named
// for what stands between the client and the service. A Source never changes, and is
// safe for concurrent use. The zero Source equals [FromRemoteAddr].
//
// A connection over a Unix socket has no address: RemoteAddr is "@" or a path.
// [Source.Addr] then returns the zero address and believes no header, and all such
// clients are counted together, as "network:unknown". If only the proxy may open the
// socket, the service can give these requests an address that it trusts before this
// package sees them; the example of [FromXForwardedFor] shows how.
type Source struct {
	trusted []netip.Prefix
	header  string        // canonical name; "": only the connection's address is read
	last    lastEntryFunc // reads a list that every proxy extends; nil: the header holds one address
	bits6   int           // of the prefix that an IPv6 client is counted by; 0: networkBits6
}

// The canonical names of the headers that are lists: every proxy adds the address of
// its client.
const (
	xForwardedFor = "X-Forwarded-For"
	forwarded     = "Forwarded"
)

// FromRemoteAddr is for a service without a proxy in front of it. It takes the
// address of the connection, and reads no header.
func FromRemoteAddr() *Source {
	return &Source{}
}

// FromXForwardedFor is for a service behind one or more reverse proxies with
// addresses in trusted, each of which adds the address of its own client at the
// end of X-Forwarded-For.
//
// If the connection comes from a trusted address, the entries of all
// X-Forwarded-For lines, joined in order, are read from the right. Trusted
// addresses are skipped; the first other address is the client. Entries to the
// left of it may be invented by the client and are not read. If every entry is
// trusted, the client is the left-most: the request came from inside the trusted
// network. If an entry is empty or not an address, reading stops, and the request
// counts for the trusted address read last, the address of the proxy that sent the entry;
// [Source.Resolve] then returns an error.
//
// An entry is an IPv4 or an IPv6 address, the latter also in brackets, each
// with or without a port.
//
// It returns an error if trusted is empty, or has a prefix that is not valid or covers all
// addresses. So it does if a prefix has bits set beyond its length (10.0.0.1/8), or writes IPv4
// as IPv6 (::ffff:10.0.0.0/104).
func FromXForwardedFor(trusted []netip.Prefix) (*Source, error) {
	return newSource(xForwardedFor, trusted, lastXForwardedFor)
}

// FromForwarded is like [FromXForwardedFor] for proxies that add an element to Forwarded (RFC
// 7239). The address of an element is its "for" parameter. Reading stops, as at an entry that
// is not an address, at an element that breaks the grammar. The same holds if it has no for
// parameter or two, or one that is "unknown" or an obfuscated name such as "_hidden". It also
// stops at an element with a backslash, which the grammar would allow.
func FromForwarded(trusted []netip.Prefix) (*Source, error) {
	return newSource(forwarded, trusted, lastForwarded)
}

// FromHeader is for a service behind one reverse proxy, at an address in trusted. The proxy
// puts only the client's address into a header field of the given name, such as X-Real-IP or
// CF-Connecting-IP, and overwrites what the client sent under that name. Many proxies do not
// overwrite by themselves: check that yours does.
//
// If the connection comes from a trusted address, and the field has one line with one
// address, that is the client's address. Otherwise it is the address of the connection.
//
// It returns an error if name is not a field name (RFC 9110 section 5.1) or is X-Forwarded-For
// or Forwarded, which hold lists. It refuses the prefixes that [FromXForwardedFor] refuses.
func FromHeader(name string, trusted []netip.Prefix) (*Source, error) {
	if !isFieldName(name) {
		return nil, fmt.Errorf("clientip: FromHeader needs the name of a header field, got %q", name)
	}
	canonical := textproto.CanonicalMIMEHeaderKey(name)
	switch canonical {
	case xForwardedFor:
		return nil, fmt.Errorf("clientip: FromHeader cannot read %s, which holds a list: use FromXForwardedFor", canonical)
	case forwarded:
		return nil, fmt.Errorf("clientip: FromHeader cannot read %s, which holds a list: use FromForwarded", canonical)
	}
	return newSource(canonical, trusted, nil)
}

func newSource(header string, trusted []netip.Prefix, last lastEntryFunc) (*Source, error) {
	if len(trusted) == 0 {
		return nil, errors.New("clientip: trusted proxies: none given; without a proxy use FromRemoteAddr")
	}
	for _, p := range trusted {
		if err := checkPrefix(p); err != nil {
			return nil, fmt.Errorf("clientip: trusted proxies: %w", err)
		}
	}
	return &Source{trusted: slices.Clone(trusted), header: header, last: last}, nil
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

// WithIPv6Prefix returns a copy of s whose NetworkSubject counts an IPv6 client by a prefix of 48
// to 64 bits, not by its /64. A client that has a /56 or a /48 of its provider is 256 or 65,536
// networks of /64. With a prefix that is shorter than what the provider hands out, several
// clients count as one. It returns an error for any other number of bits.
//
// Another prefix makes other subjects. After a change the usage of IPv6 clients begins anew, and
// their bans no longer hold. Processes that share an engine need the same prefix.
func (s *Source) WithIPv6Prefix(bits int) (*Source, error) {
	if bits < 48 || bits > networkBits6 {
		return nil, fmt.Errorf("clientip: WithIPv6Prefix: bits must be from 48 to %d, got %d", networkBits6, bits)
	}
	with := *s
	with.bits6 = bits
	return &with, nil
}

// NetworkSubject is the function [NetworkSubject] with the prefix of [Source.WithIPv6Prefix], such
// as "network:2001:db8:0:100::/56".
func (s *Source) NetworkSubject(addr netip.Addr) string {
	return subjectOf(networkOf(addr, cmp.Or(s.bits6, networkBits6)))
}

// trusts reports whether a normal address belongs to a trusted proxy.
func (s *Source) trusts(addr netip.Addr) bool {
	return slices.ContainsFunc(s.trusted, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// Addr returns the address of the client of r. IPv4 mapped into IPv6 becomes IPv4, and
// zones are removed. It is the zero [netip.Addr] if the connection has no IP address.
//
// It does not allocate, unless a trusted proxy sent something that is not an
// address.
func (s *Source) Addr(r *http.Request) netip.Addr {
	addr, _ := s.Resolve(r)
	return addr
}

// Resolve returns the address that [Source.Addr] returns, and an error if it is the
// address of a proxy that did not name its client. The error wraps [ErrAbsent] if the
// proxy sent no header. Otherwise the entry that counts is not an address, and the text
// quotes it. Such requests of all clients of a proxy are counted
// together, so a service should log or count the error.
func (s *Source) Resolve(r *http.Request) (netip.Addr, error) {
	peer, ok := parseAddr(r.RemoteAddr)
	if !ok || s.header == "" || !s.trusts(peer) {
		return peer, nil
	}
	lines := r.Header[s.header]
	switch {
	case len(lines) == 0:
		return peer, ErrAbsent
	case s.last != nil:
		return s.rightmostUntrusted(peer, lines)
	case len(lines) > 1:
		return peer, s.unreadable(strings.Join(lines, ", "))
	}
	if addr, ok := parseAddr(trimOWS(lines[0])); ok {
		return addr, nil
	}
	return peer, s.unreadable(lines[0])
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

// ErrAbsent is the error of [Source.Resolve] if a trusted proxy did not send the header.
var ErrAbsent = errors.New("clientip: no header from a trusted proxy")

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
			if last = addr; !s.trusts(addr) {
				return addr, nil
			}
		}
	}
	return last, nil
}

// unreadable quotes only the start of entry, which a client may have written.
func (s *Source) unreadable(entry string) error {
	return fmt.Errorf("clientip: entry is not an address: %s: %.64q", s.header, trimOWS(entry))
}

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
