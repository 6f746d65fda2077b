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
		{"untrusted peer is not believed", "198.51.100.1:1", []string{"for=203.0.113.9"}, "198.51.100.1"},
		{"no field", proxy, nil, "10.0.0.1"},
		{"one hop", proxy, []string{"for=203.0.113.9"}, "203.0.113.9"},
		{"parameter in capitals", proxy, []string{"For=203.0.113.9"}, "203.0.113.9"},
		{"other parameters", proxy, []string{`by=10.0.0.1;for=203.0.113.9;host=example.com;proto=https`}, "203.0.113.9"},
		{"quoted", proxy, []string{`for="203.0.113.9"`}, "203.0.113.9"},
		{"port", proxy, []string{`for="203.0.113.9:4711"`}, "203.0.113.9"},
		{"obfuscated port", proxy, []string{`for="203.0.113.9:_p-1.a"`}, "203.0.113.9"},
		{"IPv6", proxy, []string{`for="[2001:db8::9]"`}, "2001:db8::9"},
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
			got := text(source.Addr(request(tt.remote, "Forwarded", tt.lines...)))
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
		if addr != netip.MustParseAddr("10.0.0.1") || !errors.Is(err, clientip.ErrUnreadable) {
			t.Errorf("Forwarded %q: client %v and error %v, want the proxy and ErrUnreadable", element, addr, err)
		}
	}
}

// Resolve reports which header and entry of a proxy is not an address.
func TestResolve(t *testing.T) {
	trusted := prefixes(t, "10.0.0.0/8")
	list, err := clientip.FromXForwardedFor(trusted)
	if err != nil {
		t.Fatal(err)
	}
	single, err := clientip.FromHeader("X-Real-IP", trusted)
	if err != nil {
		t.Fatal(err)
	}
	const list1, single1 = "X-Forwarded-For", "X-Real-IP"
	for _, tt := range []struct {
		name   string
		source *clientip.Source
		remote string
		field  string
		lines  []string
		addr   string
		want   error
		says   string
	}{
		{"client", list, "10.0.0.1:1", list1, []string{"203.0.113.9"}, "203.0.113.9", nil, ""},
		{"inside", list, "10.0.0.1:1", list1, []string{"10.0.0.9"}, "10.0.0.9", nil, ""},
		{"untrusted peer", list, "192.0.2.1:1", list1, []string{"junk"}, "192.0.2.1", nil, ""},
		{"absent", list, "10.0.0.1:1", list1, nil, "10.0.0.1", clientip.ErrAbsent, ""},
		{"unreadable", list, "10.0.0.1:1", list1, []string{"203.0.113.9, un\nknown, 10.0.0.2"}, "10.0.0.2",
			clientip.ErrUnreadable, `X-Forwarded-For: "un\nknown"`},
		{"unreadable and long", list, "10.0.0.1:1", list1, []string{strings.Repeat("x", 100)}, "10.0.0.1",
			clientip.ErrUnreadable, `"` + strings.Repeat("x", 64) + `"`},
		{"one address", single, "10.0.0.1:1", single1, []string{"203.0.113.9"}, "203.0.113.9", nil, ""},
		{"one absent", single, "10.0.0.1:1", single1, nil, "10.0.0.1", clientip.ErrAbsent, ""},
		{"one unreadable", single, "10.0.0.1:1", single1, []string{"unknown"}, "10.0.0.1", clientip.ErrUnreadable, `X-Real-Ip: "unknown"`},
		{"two lines", single, "10.0.0.1:1", single1, []string{"1.1.1.1", "1.1.1.2"}, "10.0.0.1", clientip.ErrUnreadable, `"1.1.1.1, 1.1.1.2"`},
		{"no proxy", clientip.FromRemoteAddr(), "10.0.0.1:1", list1, nil, "10.0.0.1", nil, ""},
		{"Unix socket", list, "@", list1, []string{"203.0.113.9"}, "", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addr, err := tt.source.Resolve(request(tt.remote, tt.field, tt.lines...))
			if text(addr) != tt.addr || !errors.Is(err, tt.want) {
				t.Errorf("client %v and error %v, want %s and %v", addr, err, tt.addr, tt.want)
			}
			if err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %q does not say %s", err, tt.says)
			}
		})
	}
}
