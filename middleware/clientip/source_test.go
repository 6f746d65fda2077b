package clientip_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/internal/testcheck"
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

func prefixes(texts ...string) []netip.Prefix {
	return must(clientip.ParsePrefixes(texts))
}

// A row is a request, and the address of its client.
type row struct {
	name, remote string
	lines        []string
	want         string
}

// check finds the clients of requests with lines of a field.
func check(t *testing.T, source *clientip.Source, field string, rows []row) {
	t.Helper()
	for _, r := range rows {
		if got := text(source.Addr(request(r.remote, field, r.lines...))); got != r.want {
			t.Errorf("%s: client of %q with %s %q is %q, want %q", r.name, r.remote, field, r.lines, got, r.want)
		}
	}
}

// text writes an address for comparison; that of no address is "".
func text(addr netip.Addr) string {
	if !addr.IsValid() {
		return ""
	}
	return addr.String()
}

func TestFromRemoteAddr(t *testing.T) {
	for _, source := range []*clientip.Source{clientip.FromRemoteAddr(), {}} {
		line := []string{"203.0.113.9"}
		check(t, source, "X-Forwarded-For", []row{
			{"IPv4", "192.0.2.1:4711", line, "192.0.2.1"},
			{"IPv4 mapped into IPv6", "[::ffff:192.0.2.1]:4711", line, "192.0.2.1"},
			{"zone", "[fe80::1%eth0]:4711", line, "fe80::1"},
			{"no port", "192.0.2.1", line, "192.0.2.1"},
			{"no port, IPv6", "2001:db8::1", line, "2001:db8::1"},
			{"Unix socket without a name", "@", line, ""},
			{"Unix socket with a path", "/run/proxy.sock", line, ""},
			{"empty", "", line, ""},
			{"name", "localhost:80", line, ""},
		})
	}
}

func TestFromXForwardedFor(t *testing.T) {
	source := must(clientip.FromXForwardedFor(prefixes("10.0.0.0/8", "2001:db8:ffff::/48")))
	const proxy = "10.0.0.1:4711"
	check(t, source, "X-Forwarded-For", []row{
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
	})
}

func TestMalformedEntry(t *testing.T) {
	source := must(clientip.FromXForwardedFor(prefixes("10.0.0.0/8")))
	for _, entry := range []string{
		"unknown", "_hidden", "localhost", "unix:", "203.0.113", "203.0.113.256", "203.0.113.09",
		"203.0.113.9:", "203.0.113.9:65536", "203.0.113.9:000080", "203.0.113.9:+80", "203.0.113.9:80:80", "203.0.113.9/32",
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
	source := must(clientip.FromHeader("x-real-ip", prefixes("10.0.0.1")))
	check(t, source, "X-Real-IP", []row{
		{"one address", "10.0.0.1:1", []string{"203.0.113.9"}, "203.0.113.9"},
		{"one trusted address", "10.0.0.1:1", []string{"10.0.0.1"}, "10.0.0.1"},
		{"white space, brackets, port", "10.0.0.1:1", []string{" [2001:db8::9]:1 "}, "2001:db8::9"},
		{"untrusted peer", "10.0.0.2:1", []string{"203.0.113.9"}, "10.0.0.2"},
		{"no field", "10.0.0.1:1", nil, "10.0.0.1"},
		{"two lines", "10.0.0.1:1", []string{"203.0.113.9", "203.0.113.9"}, "10.0.0.1"},
		{"list", "10.0.0.1:1", []string{"203.0.113.9, 203.0.113.8"}, "10.0.0.1"},
		{"malformed", "10.0.0.1:1", []string{"unknown"}, "10.0.0.1"},
	})
}

func TestConstructorsRefuse(t *testing.T) {
	good := prefixes("10.0.0.0/8")
	tests := []struct {
		name    string
		trusted []netip.Prefix
		want    string // part of the error
	}{
		{"no proxies", nil, "none"},
		{"zero prefix", append(prefixes("10.0.0.0/8"), netip.Prefix{}), "not valid"},
		{"every IPv4 address", prefixes("0.0.0.0/0"), "every address"},
		{"every IPv6 address", prefixes("::/0"), "every address"},
		{"IPv4 as IPv6", prefixes("::ffff:10.0.0.0/104"), "write it as IPv4"},
		{"host bits", prefixes("10.0.0.1/8"), "write 10.0.0.0/8, or 10.0.0.1/32"},
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
	got := must(clientip.ParsePrefixes([]string{"10.0.0.0/8", "192.0.2.1", "2001:db8::/32", "2001:db8::1"}))
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

func TestFromForwarded(t *testing.T) {
	source := must(clientip.FromForwarded(prefixes("10.0.0.0/8", "2001:db8:ffff::/48")))
	const proxy = "10.0.0.1:4711"
	check(t, source, "Forwarded", []row{
		{"parameter in capitals", proxy, []string{"For=203.0.113.9"}, "203.0.113.9"},
		{"other parameters", proxy, []string{`by=10.0.0.1;for=203.0.113.9;host=example.com;proto=https`}, "203.0.113.9"},
		{"quoted", proxy, []string{`for="203.0.113.9"`}, "203.0.113.9"},
		{"port", proxy, []string{`for="203.0.113.9:4711"`}, "203.0.113.9"},
		{"obfuscated port", proxy, []string{`for="203.0.113.9:_p-1.a"`}, "203.0.113.9"},
		{"IPv6 and port", proxy, []string{`for="[2001:db8::9]:4711"`}, "2001:db8::9"},
		{"left-most is not believed", proxy, []string{"for=8.8.8.8, for=203.0.113.9"}, "203.0.113.9"},
		{"trusted hops are skipped", proxy, []string{"for=8.8.8.8,for=203.0.113.9 ,\tfor=10.0.0.2"}, "203.0.113.9"},
		{"lines are joined in order", proxy, []string{"for=203.0.113.9", `for="[2001:db8:ffff::2]"`}, "203.0.113.9"},
		{"empty pairs", proxy, []string{";for=203.0.113.9;;proto=http;"}, "203.0.113.9"},
		{"comma and semicolon in quotes", proxy, []string{`for=203.0.113.9;host="a, for=8.8.8.8;for=8.8.4.4"`}, "203.0.113.9"},
		{"tab and other than ASCII in quotes", proxy, []string{"for=203.0.113.9;host=\"\t!\x80ä\xff\""}, "203.0.113.9"},
		{"client's open quotation mark", proxy, []string{`for=", for=203.0.113.9`}, "203.0.113.9"},
		{"client's open quotation mark before quotes", proxy, []string{`for=", for="[2001:db8::9]"`}, "2001:db8::9"},
		{"client's backslash", proxy, []string{`for="\, for=203.0.113.9`}, "203.0.113.9"},

		{"unknown", proxy, []string{"for=8.8.8.8, for=unknown"}, "10.0.0.1"},
		{"hidden behind a trusted hop", proxy, []string{"for=_hidden, for=10.0.0.2"}, "10.0.0.2"},
		{"empty element", proxy, []string{"for=203.0.113.9,"}, "10.0.0.1"},
	})
}

func TestUnreadableElement(t *testing.T) {
	source := must(clientip.FromForwarded(prefixes("10.0.0.0/8")))
	for _, element := range []string{
		"", " ", ";", "for", "for=", "=203.0.113.9", "203.0.113.9", "for 203.0.113.9", "for =203.0.113.9", "for= 203.0.113.9",
		"proto=https", "by=203.0.113.9", "for=203.0.113.9; proto=https", "for=203.0.113.9;proto", "for=203.0.113.9;proto=",
		"for=203.0.113.9;for=203.0.113.9", "for=203.0.113.9;FOR=203.0.113.8", "for=_hidden;for=203.0.113.9",
		"for=203.0.113.9:80", "for=[2001:db8::9]", "for=2001:db8::9", `for="2001:db8::9"`, `for="[2001:db8::9"`,
		`for="[203.0.113.9]"`, `for="[fe80::9%eth0]"`, `for="203.0.113.9:"`, `for="203.0.113.9:_"`, `for="[2001:db8::9]:80:_x"`, `for="203.0.113.9:80:_x"`, `for="203.0.113.9:_a+"`,
		`for="203.0.113.9:123456"`, `for="203.0.113.9`, `for=203.0.113.9"`, `for=""`, `for="203.0.113.9"x`, `"for"=203.0.113.9`,
		`for="203.0.113.9";host="a\"b"`, `for="203.0.113.9";host="a\b"`, `for="203.0.113.9";host="a\\b"`, `for="203.0.113.9";host="\""";x="`, "for=\"203.0.113.9\";host=\"a\x00b\"",
		"for=203.0.113.9;host=\"a\x7fb\"", "for=203.0.113.9 x", "for='203.0.113.9'",
	} {
		r := request("10.0.0.1:1", "Forwarded", element)
		addr, err := source.Resolve(r)
		if addr != netip.MustParseAddr("10.0.0.1") || err == nil || errors.Is(err, clientip.ErrAbsent) {
			t.Errorf("Forwarded %q: client %v and error %v, want the proxy and an error that quotes the element", element, addr, err)
		}
	}
}

// Resolve says which header and entry of a proxy is not an address.
func TestResolve(t *testing.T) {
	trusted := prefixes("10.0.0.0/8")
	list, err1 := clientip.FromXForwardedFor(trusted)
	single, err2 := clientip.FromHeader("X-Real-IP", trusted)
	testcheck.NoError(t, errors.Join(err1, err2))
	absent := clientip.ErrAbsent.Error()
	for _, tt := range []struct {
		source        *clientip.Source
		remote, field string
		lines         []string
		addr, err     string
	}{
		{list, "10.0.0.1:1", "X-Forwarded-For", []string{"203.0.113.9"}, "203.0.113.9", ""},
		{list, "192.0.2.1:1", "X-Forwarded-For", []string{"junk"}, "192.0.2.1", ""},
		{list, "10.0.0.1:1", "X-Forwarded-For", nil, "10.0.0.1", absent},
		{list, "10.0.0.1:1", "X-Forwarded-For", []string{"203.0.113.9, un\nknown, 10.0.0.2"}, "10.0.0.2",
			`clientip: entry is not an address: X-Forwarded-For: "un\nknown"`},
		{list, "10.0.0.1:1", "X-Forwarded-For", []string{strings.Repeat("x", 100)}, "10.0.0.1",
			`clientip: entry is not an address: X-Forwarded-For: "` + strings.Repeat("x", 64) + `"`},
		{list, "@", "X-Forwarded-For", []string{"203.0.113.9"}, "", ""},
		{single, "10.0.0.1:1", "X-Real-IP", nil, "10.0.0.1", absent},
		{single, "10.0.0.1:1", "X-Real-IP", []string{"unknown"}, "10.0.0.1", `clientip: entry is not an address: X-Real-Ip: "unknown"`},
		{single, "10.0.0.1:1", "X-Real-IP", []string{"1.1.1.1", "1.1.1.2"}, "10.0.0.1", `clientip: entry is not an address: X-Real-Ip: "1.1.1.1, 1.1.1.2"`},
		{clientip.FromRemoteAddr(), "10.0.0.1:1", "X-Forwarded-For", nil, "10.0.0.1", ""},
	} {
		addr, err := tt.source.Resolve(request(tt.remote, tt.field, tt.lines...))
		said := ""
		if err != nil {
			said = err.Error()
		}
		if text(addr) != tt.addr || said != tt.err {
			t.Errorf("%s sends %s %q: client %v and error %q, want %s and %q", tt.remote, tt.field, tt.lines, addr, said, tt.addr, tt.err)
		}
	}
}

// With a prefix of 48 to 64 bits only the networks of ordinary IPv6 change.
func TestIPv6Prefix(t *testing.T) {
	trusted := prefixes("10.0.0.0/8")
	plain := testcheck.Must(clientip.FromXForwardedFor(trusted))
	trusted[0] = netip.Prefix{} // a Source never changes
	for bits, want := range map[int]string{
		48: "2001:db8:1::/48", 52: "2001:db8:1:a000::/52", 56: "2001:db8:1:ab00::/56", 63: "2001:db8:1:abcc::/63", 64: "2001:db8:1:abcd::/64",
	} {
		source := testcheck.Must(plain.WithIPv6Prefix(bits))
		r := request("10.0.0.1:1", "X-Forwarded-For", "2001:db8:1:abcd:1:2:3:4")
		if got := source.NetworkSubject(source.Addr(r)); got != "network:"+want {
			t.Errorf("%d bits: the subject is %q, want network:%s", bits, got, want)
		}
		for _, other := range []string{
			"192.0.2.1", "::ffff:192.0.2.1", "64:ff9b::192.0.2.1", "64:ff9b::192.0.2.1%eth0", "64:ff9b:1::192.0.2.1", "64:ff9b:1:c000:2:100::",
		} {
			addr := netip.MustParseAddr(other)
			if got := source.NetworkSubject(addr); got != clientip.NetworkSubject(addr) {
				t.Errorf("%d bits: the subject of %s is %q, want %q", bits, other, got, clientip.NetworkSubject(addr))
			}
		}
		if got, want := source.NetworkSubject(netip.MustParseAddr("2001:db8:1:abcd::1%eth0")), "network:"+want; got != want {
			t.Errorf("%d bits: the subject of an address with a zone is %q, want %q", bits, got, want)
		}
		if got := source.NetworkSubject(netip.Addr{}); got != "network:unknown" {
			t.Errorf("%d bits: the subject of no address is %q", bits, got)
		}
		if got := plain.NetworkSubject(netip.MustParseAddr("2001:db8:1:abcd::1")); got != "network:2001:db8:1:abcd::/64" {
			t.Errorf("%d bits: without a prefix the subject is %q, want the /64", bits, got)
		}
	}
	for _, bits := range []int{-1, 0, 32, 47, 65, 128} {
		want := fmt.Sprintf("clientip: WithIPv6Prefix: bits must be from 48 to 64, got %d", bits)
		if source, err := plain.WithIPv6Prefix(bits); source != nil || err == nil || err.Error() != want {
			t.Errorf("%d bits: %v, want %q", bits, err, want)
		}
	}
}

func TestNetworkAndSubject(t *testing.T) {
	tests := []struct {
		name string
		addr netip.Addr
		want string
	}{
		{"IPv4", netip.MustParseAddr("192.0.2.1"), "192.0.2.1/32"},
		{"IPv6", netip.MustParseAddr("2001:db8:0:1:2:3:4:5"), "2001:db8:0:1::/64"},
		{"mapped", netip.MustParseAddr("::ffff:192.0.2.1"), "192.0.2.1/32"},
		{"NAT64", netip.MustParseAddr("64:ff9b::192.0.2.1"), "192.0.2.1/32"},
		{"another client behind the same NAT64", netip.MustParseAddr("64:ff9b::192.0.2.2"), "192.0.2.2/32"},
		{"NAT64 with a zone", netip.MustParseAddr("64:ff9b::192.0.2.1%eth0"), "192.0.2.1/32"},
		{"beside the NAT64 prefix", netip.MustParseAddr("64:ff9b::1:192.0.2.1"), "64:ff9b::/64"},
		{"local NAT64, /96", netip.MustParseAddr("64:ff9b:1::192.0.2.1"), "64:ff9b:1::c000:201/128"},
		{"local NAT64, /48", netip.MustParseAddr("64:ff9b:1:c000:2:100::"), "64:ff9b:1:c000:2:100::/128"},
		{"beside the local NAT64 prefix", netip.MustParseAddr("64:ff9b:2::1"), "64:ff9b:2::/64"},
		{"zone", netip.MustParseAddr("fe80::1%eth0"), "fe80::/64"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := clientip.Network(tt.addr).String(); got != tt.want {
				t.Errorf("Network(%v) = %s, want %s", tt.addr, got, tt.want)
			}
			if got := clientip.NetworkSubject(tt.addr); got != "network:"+tt.want {
				t.Errorf("NetworkSubject(%v) = %q, want %q", tt.addr, got, "network:"+tt.want)
			}
		})
	}
	if got := clientip.Network(netip.Addr{}); got != (netip.Prefix{}) {
		t.Errorf("Network of no address = %v, want the zero prefix", got)
	}
	if got := clientip.NetworkSubject(netip.Addr{}); got != "network:unknown" {
		t.Errorf("NetworkSubject of no address = %q, want network:unknown", got)
	}
}

// must returns v. It panics if what a test sets up fails.
func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

func TestAddrDoesNotAllocate(t *testing.T) {
	source := must(clientip.FromXForwardedFor(prefixes("10.0.0.0/8")))
	r := request("10.0.0.1:4711", "X-Forwarded-For", "[2001:db8::9%eth0]:443, 10.0.0.2")
	if got := testing.AllocsPerRun(100, func() { source.Addr(r) }); got != 0 {
		t.Errorf("Addr allocates %v times, want none", got)
	}
}
