package limit_test

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
)

func TestBehind(t *testing.T) {
	s := around(t, limit.Behind("10.0.0.0/8", "192.0.2.7").ByIP(perYear(1)))
	s.want(200, "10.0.0.1:1", "X-Forwarded-For", "198.51.100.1")
	s.want(429, "10.0.0.2:1", "X-Forwarded-For", "198.51.100.1")
	s.want(429, "192.0.2.7:1", "X-Forwarded-For", "203.0.113.9, 198.51.100.1") // the first is invented
	s.want(200, "192.0.2.7:1", "X-Forwarded-For", "198.51.100.2")
	// Another peer is not believed.
	s.want(200, "192.0.2.8:1", "X-Forwarded-For", "198.51.100.3")
	s.want(429, "192.0.2.8:1", "X-Forwarded-For", "198.51.100.4")
}

func TestBehindOtherLimits(t *testing.T) {
	behind := limit.Behind("10.0.0.0/8")
	users := around(t, behind.ByUser(userField, perYear(1)))
	users.want(200, "10.0.0.1:1", "X-Forwarded-For", "198.51.100.1", "User", "ann")
	users.want(200, "10.0.0.1:1", "X-Forwarded-For", "198.51.100.1")
	users.want(200, "10.0.0.1:1", "X-Forwarded-For", "198.51.100.2")
	users.want(429, "10.0.0.1:1", "X-Forwarded-For", "198.51.100.2")
}

func TestClientsWithASource(t *testing.T) {
	source, err := clientip.FromHeader("CF-Connecting-IP", []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	if err != nil {
		t.Fatal(err)
	}
	s := around(t, limit.Clients{Source: source}.ByIP(perYear(1)))
	s.want(200, "10.0.0.1:1", "CF-Connecting-IP", "198.51.100.1")
	s.want(200, "10.0.0.1:1", "CF-Connecting-IP", "198.51.100.2")
	s.want(429, "10.0.0.1:1", "CF-Connecting-IP", "198.51.100.2")
}

func TestWarningAboutAProxy(t *testing.T) {
	var log bytes.Buffer
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	for _, c := range []struct {
		name   string
		limit  limit.Clients
		addr   string
		header []string
		warns  bool
	}{
		{"a proxy in a private network", limit.Clients{}, "10.0.0.1:1", []string{"X-Forwarded-For", "198.51.100.1"}, true},
		{"a proxy on this host", limit.Clients{}, "[::1]:1", []string{"Forwarded", "for=198.51.100.1"}, true},
		{"a Unix socket", limit.Clients{}, "@", nil, true},
		{"a client in a private network", limit.Clients{}, "10.0.0.1:1", nil, false},
		{"a header of an unknown client", limit.Clients{}, "198.51.100.1:1", []string{"X-Forwarded-For", "192.0.2.1"}, false},
		{"a proxy that is known", limit.Behind("10.0.0.1"), "10.0.0.1:1", []string{"X-Forwarded-For", "198.51.100.1"}, false},
		{"another proxy than the known", limit.Behind("10.0.0.1"), "10.0.0.2:1", []string{"X-Forwarded-For", "198.51.100.1"}, true},
		{"a client in the network of the proxies", limit.Behind("10.0.0.0/8"), "10.0.0.1:1", []string{"X-Forwarded-For", "10.0.0.9"}, false},
		{"a known proxy that sends no header", limit.Behind("10.0.0.0/8"), "10.0.0.9:1", nil, true},
		{"a known proxy that sends no address", limit.Behind("10.0.0.0/8"), "10.0.0.9:1", []string{"X-Forwarded-For", "unknown"}, true},
		{"a Unix socket and no known proxy", limit.Behind("10.0.0.0/8"), "@", nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			log.Reset()
			s := around(t, c.limit.ByIP(perYear(10)))
			s.want(200, c.addr, c.header...)
			s.want(200, c.addr, c.header...)
			want := 0
			if c.warns {
				want = 1
			}
			if got := strings.Count(log.String(), "level=WARN msg=\"limit: "); got != want {
				t.Errorf("%d warnings after two requests, want %d:\n%s", got, want, &log)
			}
		})
	}
}
