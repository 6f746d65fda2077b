package clientip

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

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
