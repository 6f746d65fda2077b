package httpserver_test

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/httpserver"
)

// farListener lets connections come from somewhere else than they do.
type farListener struct {
	net.Listener
	from *net.TCPAddr
}

type farConn struct {
	net.Conn
	from net.Addr
}

func (c farConn) RemoteAddr() net.Addr { return c.from }

func (l farListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return farConn{c, l.from}, nil
}

func TestConnectionsOfANetwork(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	for name, test := range map[string]struct {
		from    string
		proxies []netip.Prefix
		want    int
	}{
		"far":           {"192.0.2.1", nil, 3},
		"loopback":      {"127.0.0.1", nil, 6},
		"loopback IPv6": {"::1", nil, 6},
		"trusted proxy": {"192.0.2.1", proxies, 6},
	} {
		t.Run(name, func(t *testing.T) {
			var log lockedBuffer
			s := serveOn(t, hello, httpserver.Options{
				MaxConnsPerNetwork: 3, TrustedProxies: test.proxies, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			}, func(l net.Listener) net.Listener {
				return farListener{l, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(test.from), 1))}
			})
			var served []net.Conn
			for range 6 {
				if c := s.dial(t); request(c) {
					served = append(served, c)
				}
			}
			if len(served) != test.want {
				t.Errorf("%d of 6 connections are served, want %d", len(served), test.want)
			}
			served[0].Close()
			for !request(s.dial(t)) { // until the server has noticed
			}
			if again := request(s.dial(t)); again != (test.want == 6) {
				t.Errorf("after one connection was closed and replaced, another one is served: %v", again)
			}
			want := `connections=1 setting=max_connections_per_network limit=3`
			if refused := test.want < 6; strings.Contains(log.String(), want) != refused {
				t.Errorf("connections are refused: %v, and the log is %q", refused, log.String())
			}
		})
	}
}

// However many connections are refused, the log has one line a minute.
func TestRefusedConnectionsAreLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		l := newPipeListener()
		s, err := httpserver.New(hello, httpserver.Options{MaxConns: 50, MaxConnsPerNetwork: 1, PlainHTTP: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(ctx, l) }()
		l.connect()
		for range 100 {
			l.connect()
		}
		synctest.Wait()
		if got := strings.Count(log.String(), "\n"); got != 1 {
			t.Errorf("100 refusals in an instant make %d lines, want 1\n%s", got, log.String())
		}
		time.Sleep(time.Minute + time.Second)
		if got, want := log.String(), "connections=99 setting=max_connections_per_network"; !strings.Contains(got, want) {
			t.Errorf("after a minute the log is %q, want %q in it", got, want)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
