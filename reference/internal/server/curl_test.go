package server

import (
	"net"
	"net/netip"
	"testing"
)

func TestLocalAddress(t *testing.T) {
	for listener, want := range map[string]string{
		"127.0.0.1:8080":   "127.0.0.1:8080",
		"0.0.0.0:8080":     "127.0.0.1:8080",
		"[::]:8080":        "127.0.0.1:8080",
		"[::1]:8080":       "[::1]:8080",
		"192.0.2.1:8080":   "192.0.2.1:8080",
		"[2001:db8::1]:80": "[2001:db8::1]:80",
	} {
		addr := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(listener))
		if got := localAddress(addr); got != want {
			t.Errorf("a listener at %s is reached at %s, want %s", listener, got, want)
		}
	}
}

func TestQuote(t *testing.T) {
	for word, want := range map[string]string{
		"":                      "''",
		"http://[::1]:80/v1":    "'http://[::1]:80/v1'",
		"http://127.0.0.1/v1":   "http://127.0.0.1/v1",
		"Authorization: Bearer": "'Authorization: Bearer'",
		"it's":                  `'it'\''s'`,
		"a&b":                   "'a&b'",
	} {
		if got := quote(word); got != want {
			t.Errorf("quote(%q) = %s, want %s", word, got, want)
		}
	}
}
