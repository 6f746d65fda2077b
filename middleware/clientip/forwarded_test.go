package clientip_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/middleware/clientip"
)

func TestFromForwarded(t *testing.T) {
	source, err := clientip.FromForwarded(prefixes(t, "10.0.0.0/8", "2001:db8:ffff::/48"))
	if err != nil {
		t.Fatal(err)
	}
	const proxy = "10.0.0.1:4711"
	tests := []struct {
		name, remote string
		lines        []string
		want         string
	}{
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
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := clientOf(t, source, request(tt.remote, "Forwarded", tt.lines...))
			if got != tt.want {
				t.Errorf("client of %q with Forwarded %q is %q, want %q", tt.remote, tt.lines, got, tt.want)
			}
		})
	}
}

func TestUnreadableElement(t *testing.T) {
	source, err := clientip.FromForwarded(prefixes(t, "10.0.0.0/8"))
	if err != nil {
		t.Fatal(err)
	}
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
	trusted := prefixes(t, "10.0.0.0/8")
	list, err1 := clientip.FromXForwardedFor(trusted)
	single, err2 := clientip.FromHeader("X-Real-IP", trusted)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
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
	// The header of a peer that is not trusted is not looked at.
	list.AddrFrom(netip.MustParseAddr("192.0.2.1"), func(name string) []string {
		t.Errorf("AddrFrom reads %s of a peer that is not trusted", name)
		return nil
	})
}
