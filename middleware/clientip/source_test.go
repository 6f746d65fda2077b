package clientip_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/middleware/clientip"
)

// request is a request over a connection from remote, with the lines of a header
// field.
func request(remote, field string, lines ...string) *http.Request {
	r := &http.Request{RemoteAddr: remote, Header: http.Header{}}
	for _, line := range lines {
		r.Header.Add(field, line)
	}
	return r
}

func prefixes(t testing.TB, texts ...string) []netip.Prefix {
	t.Helper()
	ps, err := clientip.ParsePrefixes(texts)
	if err != nil {
		t.Fatal(err)
	}
	return ps
}

// clientOf returns the client of a request, which Addr and AddrFrom find alike.
func clientOf(t testing.TB, source *clientip.Source, r *http.Request) string {
	t.Helper()
	got := text(source.Addr(r))
	if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		from := text(source.AddrFrom(peer.Addr(), func(name string) []string { return r.Header[name] }))
		if from != got {
			t.Errorf("peer %s with %v: Addr finds %q and AddrFrom %q", r.RemoteAddr, r.Header, got, from)
		}
	}
	return got
}

// text writes an address for comparison; that of no address is "".
func text(addr netip.Addr) string {
	if !addr.IsValid() {
		return ""
	}
	return addr.String()
}

func TestFromRemoteAddr(t *testing.T) {
	tests := []struct {
		name, remote, want string
	}{
		{"IPv4", "192.0.2.1:4711", "192.0.2.1"},
		{"IPv4 mapped into IPv6", "[::ffff:192.0.2.1]:4711", "192.0.2.1"},
		{"zone", "[fe80::1%eth0]:4711", "fe80::1"},
		{"no port", "192.0.2.1", "192.0.2.1"},
		{"no port, IPv6", "2001:db8::1", "2001:db8::1"},
		{"Unix socket without a name", "@", ""},
		{"Unix socket with a path", "/run/proxy.sock", ""},
		{"empty", "", ""},
		{"name", "localhost:80", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := request(tt.remote, "X-Forwarded-For", "203.0.113.9")
			for name, source := range map[string]*clientip.Source{"constructor": clientip.FromRemoteAddr(), "zero value": {}} {
				if got := clientOf(t, source, r); got != tt.want {
					t.Errorf("%s: client of a connection from %q is %q, want %q", name, tt.remote, got, tt.want)
				}
			}
		})
	}
}

func TestFromXForwardedFor(t *testing.T) {
	source, err := clientip.FromXForwardedFor(prefixes(t, "10.0.0.0/8", "2001:db8:ffff::/48"))
	if err != nil {
		t.Fatal(err)
	}
	const proxy = "10.0.0.1:4711"
	tests := []struct {
		name, remote string
		lines        []string
		want         string
	}{
		{"untrusted peer is believed nothing", "198.51.100.1:4711", []string{"203.0.113.9"}, "198.51.100.1"},
		{"Unix socket is believed nothing", "@", []string{"203.0.113.9"}, ""},
		{"left-most is not believed", proxy, []string{"8.8.8.8, 203.0.113.9"}, "203.0.113.9"},
		{"trusted hops are skipped", proxy, []string{"8.8.8.8, 203.0.113.9, 10.0.0.3, 10.0.0.2"}, "203.0.113.9"},
		{"lines are joined in order", proxy, []string{"8.8.8.8, 203.0.113.9", "10.0.0.3", "10.0.0.2"}, "203.0.113.9"},
		{"client's own line comes first", proxy, []string{"8.8.8.8", "203.0.113.9"}, "203.0.113.9"},
		{"all trusted: the left-most", proxy, []string{"10.9.9.9, 10.0.0.2"}, "10.9.9.9"},
		{"malformed at the right", proxy, []string{"203.0.113.9, unknown"}, "10.0.0.1"},
		{"malformed behind a trusted hop", proxy, []string{"203.0.113.9, _hidden, 10.0.0.2"}, "10.0.0.2"},
		{"malformed behind the client is not looked at", proxy, []string{"garbage, 203.0.113.9"}, "203.0.113.9"},
		{"empty entry ends the walk", proxy, []string{"203.0.113.9, , 10.0.0.2"}, "10.0.0.2"},
		{"trailing comma ends the walk", proxy, []string{"203.0.113.9,"}, "10.0.0.1"},
		{"white space", proxy, []string{"8.8.8.8 ,\t203.0.113.9 \t,\t 10.0.0.2 "}, "203.0.113.9"},
		{"IPv6", proxy, []string{"2001:db8::9"}, "2001:db8::9"},
		{"IPv6 in brackets with a port", proxy, []string{"[2001:db8::9]:443"}, "2001:db8::9"},
		{"IPv6 with a zone", proxy, []string{"fe80::9%eth0"}, "fe80::9"},
		{"mapped trusted hop cannot pass as a client", proxy, []string{"203.0.113.9, ::ffff:10.0.0.2"}, "203.0.113.9"},
		{"zoned trusted hop cannot pass as a client", proxy, []string{"203.0.113.9, 2001:db8:ffff::2%x"}, "203.0.113.9"},
		{"mapped trusted peer", "[::ffff:10.0.0.1]:4711", []string{"203.0.113.9"}, "203.0.113.9"},
		{"IPv6 trusted peer", "[2001:db8:ffff::1]:4711", []string{"203.0.113.9"}, "203.0.113.9"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := clientOf(t, source, request(tt.remote, "X-Forwarded-For", tt.lines...))
			if got != tt.want {
				t.Errorf("client of %q with X-Forwarded-For %q is %q, want %q", tt.remote, tt.lines, got, tt.want)
			}
		})
	}
}

func TestMalformedEntry(t *testing.T) {
	source, err := clientip.FromXForwardedFor(prefixes(t, "10.0.0.0/8"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range []string{
		"unknown", "_hidden", "localhost", "unix:", "203.0.113", "203.0.113.256", "203.0.113.09",
		"203.0.113.9:", "203.0.113.9:65536", "203.0.113.9:+80", "203.0.113.9:80:80", "203.0.113.9/32",
		"203.0.113.9%eth0", "[203.0.113.9]", "[2001:db8::9", "2001:db8::9]", "[2001:db8::9]443",
		"[2001:db8::9]:", "[]", "[:]", "[", "]", "%", "fe80::9%", "[fe80::9%]", `"203.0.113.9"`,
		"2001:db8:::9", "203.0.113.9 203.0.113.8", "for=203.0.113.9", "203.0.113.9;203.0.113.8", "２０３.0.113.9",
	} {
		if got := text(source.Addr(request("10.0.0.1:1", "X-Forwarded-For", entry))); got != "10.0.0.1" {
			t.Errorf("client with X-Forwarded-For %q is %q, want that of the connection: the entry is no address", entry, got)
		}
	}
}

func TestFromHeader(t *testing.T) {
	source, err := clientip.FromHeader("x-real-ip", prefixes(t, "10.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, remote string
		lines        []string
		want         string
	}{
		{"one address", "10.0.0.1:1", []string{"203.0.113.9"}, "203.0.113.9"},
		{"one trusted address", "10.0.0.1:1", []string{"10.0.0.1"}, "10.0.0.1"},
		{"white space, brackets, port", "10.0.0.1:1", []string{" [2001:db8::9]:1 "}, "2001:db8::9"},
		{"untrusted peer", "10.0.0.2:1", []string{"203.0.113.9"}, "10.0.0.2"},
		{"no field", "10.0.0.1:1", nil, "10.0.0.1"},
		{"two lines", "10.0.0.1:1", []string{"203.0.113.9", "203.0.113.9"}, "10.0.0.1"},
		{"list", "10.0.0.1:1", []string{"203.0.113.9, 203.0.113.8"}, "10.0.0.1"},
		{"malformed", "10.0.0.1:1", []string{"unknown"}, "10.0.0.1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := clientOf(t, source, request(tt.remote, "X-Real-IP", tt.lines...))
			if got != tt.want {
				t.Errorf("client of %q with X-Real-IP %q is %q, want %q", tt.remote, tt.lines, got, tt.want)
			}
		})
	}
}

func TestConstructorsRefuse(t *testing.T) {
	good := prefixes(t, "10.0.0.0/8")
	tests := []struct {
		name    string
		trusted []netip.Prefix
		want    string // part of the error
	}{
		{"no proxies", nil, "none"},
		{"zero prefix", append(prefixes(t, "10.0.0.0/8"), netip.Prefix{}), "not valid"},
		{"every IPv4 address", prefixes(t, "0.0.0.0/0"), "every address"},
		{"every IPv6 address", prefixes(t, "::/0"), "every address"},
		{"IPv4 as IPv6", prefixes(t, "::ffff:10.0.0.0/104"), "write it as IPv4"},
		{"host bits", prefixes(t, "10.0.0.1/8"), "write 10.0.0.0/8, or 10.0.0.1/32"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := clientip.FromXForwardedFor(tt.trusted)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("FromXForwardedFor: error %v, want one that says %q", err, tt.want)
			}
			_, err = clientip.FromHeader("X-Real-IP", tt.trusted)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("FromHeader: error %v, want one that says %q", err, tt.want)
			}
		})
	}
	for name, want := range map[string]string{
		"": "needs the name of a header field", "X Real": "needs the name of a header field", "X-Real-IP:": "needs the name of a header field",
		"É": "needs the name of a header field", "x-forwarded-for": "use FromXForwardedFor", "forwarded": "use FromForwarded",
	} {
		if _, err := clientip.FromHeader(name, good); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("FromHeader with the field name %q: error %v, want one that says %q", name, err, want)
		}
	}
}

func TestParsePrefixes(t *testing.T) {
	got, err := clientip.ParsePrefixes([]string{"10.0.0.0/8", "192.0.2.1", "2001:db8::/32", "2001:db8::1"})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, p := range got {
		texts = append(texts, p.String())
	}
	want := []string{"10.0.0.0/8", "192.0.2.1/32", "2001:db8::/32", "2001:db8::1/128"}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("prefixes (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"", "10.0.0.0/33", "10.0.0.0/", "proxy.example", "fe80::1%eth0", " 10.0.0.1"} {
		_, err := clientip.ParsePrefixes([]string{"10.0.0.0/8", bad})
		if err == nil || !strings.Contains(err.Error(), `"`+bad+`"`) {
			t.Errorf("error for %q is %v, want one that names it", bad, err)
		}
	}
}
