package clientip_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/middleware/clientip"
)

// Whatever the header says, the client is the peer, or an address that stands in
// the header; and what a client writes in front changes nothing once a proxy has
// added the client's own address.
func FuzzXForwardedFor(f *testing.F) {
	for _, seed := range []string{
		"", "203.0.113.9", "8.8.8.8, 203.0.113.9, 10.0.0.2", "[2001:db8::1]:443", "fe80::1%eth0",
		"::ffff:10.0.0.2", ", ,", "unknown", "10.0.0.2", "[::ffff:10.0.0.2%x]:0", "1.2.3.4:99999", "[]", "\x00", "%",
	} {
		f.Add(seed, seed)
	}
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:ffff::/48")}
	source := must(clientip.FromXForwardedFor(trusted))
	peer := netip.MustParseAddr("10.0.0.1")
	client := netip.MustParseAddr("203.0.113.9")

	f.Fuzz(func(t *testing.T, first, second string) {
		addr := source.Addr(request("10.0.0.1:4711", "X-Forwarded-For", first, second))
		switch {
		case !addr.IsValid():
			t.Errorf("no client for %q, %q, though the connection has an address", first, second)
		case addr.Is4In6() || addr.Zone() != "":
			t.Errorf("client %v for %q, %q is not in normal form", addr, first, second)
		case addr != peer && !stands(addr, first+","+second):
			t.Errorf("client %v does not stand in %q, %q", addr, first, second)
		}

		added := second + ", " + client.String()
		if got := source.Addr(request("10.0.0.1:4711", "X-Forwarded-For", first, added)); got != client {
			t.Errorf("client %v, though the proxy added %v to %q, %q", got, client, first, second)
		}
		if got := source.Addr(request("198.51.100.1:1", "X-Forwarded-For", first, second)); got.String() != "198.51.100.1" {
			t.Errorf("an untrusted peer was believed: client %v for %q, %q", got, first, second)
		}
	})
}

// stands reports whether one of the entries of a list is addr, by looking at it
// more slowly than the package does.
func stands(addr netip.Addr, list string) bool {
	for _, entry := range strings.Split(list, ",") {
		entry = strings.Trim(entry, " \t")
		forms := []string{entry, strings.Trim(entry, "[]")}
		if colon := strings.LastIndexByte(entry, ':'); colon >= 0 {
			forms = append(forms, entry[:colon], strings.Trim(entry[:colon], "[]"))
		}
		for _, form := range forms {
			host, _, _ := strings.Cut(form, "%")
			if got, err := netip.ParseAddr(host); err == nil && got.Unmap() == addr {
				return true
			}
		}
	}
	return false
}

// What FuzzXForwardedFor promises holds for Forwarded too: the client is the peer
// or stands in the header, and no text in front hides what a proxy adds.
func FuzzForwarded(f *testing.F) {
	for _, seed := range []string{
		"", "for=203.0.113.9", `for="[2001:db8::1]:443";proto=https`, `for="`, `for="\`, `for=a;by="x, for=1.1.1.1`, ", ,",
		"for=unknown", "for=_hidden, for=10.0.0.2", `host="a\"b"`, ";;", "=", `for="::1"`, `for="1.2.3.4:_x"`, "\x00",
	} {
		f.Add(seed, seed)
	}
	source := must(clientip.FromForwarded([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}))
	peer := netip.MustParseAddr("10.0.0.1")
	client := netip.MustParseAddr("2001:db8::9")

	f.Fuzz(func(t *testing.T, first, second string) {
		addr, err := source.Resolve(request("10.0.0.1:4711", "Forwarded", first, second))
		switch {
		case !addr.IsValid() || addr.Is4In6() || addr.Zone() != "":
			t.Errorf("client %v for %q, %q is not in normal form", addr, first, second)
		case addr != peer && !quotes(addr, first+","+second):
			t.Errorf("client %v does not stand in %q, %q", addr, first, second)
		case addr == peer && err == nil && !quotes(peer, first+","+second):
			t.Errorf("the request counts for the proxy without an error for %q, %q", first, second)
		}

		added := second + `, for="[2001:db8::9]:443";host="a, b"`
		if got := source.Addr(request("10.0.0.1:4711", "Forwarded", first, added)); got != client {
			t.Errorf("client %v, though the proxy added %v to %q, %q", got, client, first, second)
		}
		if got := source.Addr(request("198.51.100.1:1", "Forwarded", first, second)); got.String() != "198.51.100.1" {
			t.Errorf("an untrusted peer was believed: client %v for %q, %q", got, first, second)
		}
	})
}

// quotes reports whether one of the for parameters in text is addr, however the
// text is cut into elements and pairs.
func quotes(addr netip.Addr, text string) bool {
	for _, part := range strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(",; \t", c) }) {
		if name, value, _ := strings.Cut(part, "="); strings.EqualFold(name, "for") && stands(addr, strings.Trim(value, `"`)) {
			return true
		}
	}
	return false
}

// The address of a connection is read as the standard library reads it, but for zones with
// a bracket, which no system has.
func FuzzRemoteAddr(f *testing.F) {
	for _, seed := range []string{"192.0.2.1:80", "[2001:db8::1]:80", "[fe80::1%eth0]:80", "@", "", "[::ffff:1.2.3.4]:1", "1.2.3.4"} {
		f.Add(seed)
	}
	source := clientip.FromRemoteAddr()
	f.Fuzz(func(t *testing.T, remote string) {
		got := source.Addr(&http.Request{RemoteAddr: remote})
		if want, err := netip.ParseAddrPort(remote); err == nil && strings.Count(remote, "]") <= 1 && got != want.Addr().Unmap().WithZone("") {
			t.Errorf("client of a connection from %q is %v, want %v", remote, got, want.Addr())
		}
		if got.IsValid() && (got.Is4In6() || got.Zone() != "") {
			t.Errorf("client %v of a connection from %q is not in normal form", got, remote)
		}
		if subject := clientip.NetworkSubject(got); got.IsValid() == (subject == "network:unknown") {
			t.Errorf("NetworkSubject(%v) = %q", got, subject)
		}
	})
}
