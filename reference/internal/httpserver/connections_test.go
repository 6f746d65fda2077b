package httpserver_test

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/reference/internal/httpserver"
)

// Over TLS, where net/http knows other connections than the listener. The test
// needs a bubble: a client has its response a moment before the server marks the connection as
// idle.
func TestFullServerClosesTheConnectionIdleForLongest(t *testing.T) {
	var log testcheck.Log
	o := certificate(t)
	o.MaxConns = 3
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	synctest.Test(t, func(t *testing.T) {
		_, l, _, _ := serveInBubble(t, o)
		served := func(c net.Conn) bool {
			ok := request(c)
			synctest.Wait()
			return ok
		}
		var conns []net.Conn
		for i := range 4 {
			c := tls.Client(l.connect(), insecure())
			if !served(c) {
				t.Fatalf("connection %d is not served although others are idle", i)
			}
			conns = append(conns, c)
			if i == 2 && !served(conns[0]) { // now connection 1 is idle for longest
				t.Fatal("connection 0 is not served again")
			}
		}
		conns[1].SetDeadline(time.Now().Add(time.Second))
		if !isClosed(conns[1]) {
			t.Error("the connection idle for longest is still open")
		}
		for _, i := range []int{0, 2, 3} {
			if !served(conns[i]) {
				t.Errorf("connection %d was closed, want only the one idle for longest", i)
			}
			conns[i].Close()
		}
	})
	if want := "setting=max_connections limit=3"; !strings.Contains(log.String(), want) {
		t.Errorf("the log is %q, want %q in it", log.String(), want)
	}
}

// A connection that closes after its request makes room like one that becomes idle.
func TestFullServerServesOnceAConnectionCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l, _, _ := serveInBubble(t, httpserver.Options{MaxConns: 1})
		last := l.connect()
		go io.WriteString(last, "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 1\r\n\r\n")
		synctest.Wait() // the request runs until its client reads the response
		waiting := l.connect()
		answered := make(chan bool, 1)
		go func() { answered <- request(waiting) }()
		synctest.Wait()
		last.Close()
		select {
		case ok := <-answered:
			if !ok {
				t.Error("the connection that waited is not served")
			}
		case <-time.After(time.Minute):
			t.Error("a minute after the other connection has closed, the one that waits is not served")
		}
		waiting.Close()
	})
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
			var log testcheck.Log
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, hello, httpserver.Options{
					MaxConnsPerNetwork: 3, TrustedProxies: test.proxies, Logger: slog.New(slog.NewTextHandler(&log, nil)),
				})
				l, _, _ := serveOnPipe(t, s)
				l.from = net.ParseIP(test.from)
				served := func() (conns []net.Conn) {
					for range 6 {
						if c := l.connect(); request(c) {
							conns = append(conns, c)
							t.Cleanup(func() { c.Close() })
						}
					}
					return conns
				}
				first := served()
				if refused := s.Stats().Refused; len(first) != test.want || refused != int64(6-test.want) {
					t.Errorf("%d of 6 connections are served, and %d counted as refused, want %d served", len(first), refused, test.want)
				}
				first[0].Close()
				synctest.Wait()
				again := 6
				if test.want < 6 {
					again = 1 // in the place of the one that was closed
				}
				if got := len(served()); got != again {
					t.Errorf("after one connection was closed, %d of 6 are served, want %d", got, again)
				}
			})
			want := `setting=max_connections_per_network limit=3 network=192.0.2.1/32`
			if refused := test.want < 6; strings.Contains(log.String(), want) != refused {
				t.Errorf("connections are refused: %v, and the log is %q", refused, log.String())
			}
		})
	}
}

// Connections with a running request stay, and a new one waits until one of them is idle.
func TestStatsOfConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finish := make(chan bool)
		s := newServer(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-finish }), httpserver.Options{MaxConns: 2})
		want := func(what string, want httpserver.Stats) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(want, s.Stats()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		want("before Serve", httpserver.Stats{})
		l, _, _ := serveOnPipe(t, s)
		answers := make(chan bool, 3)
		ask := func(c net.Conn) { go func() { answers <- request(c) }() }
		l.connect()
		second := l.connect()
		want("two connections without a request", httpserver.Stats{Open: 2, Idle: 2})
		ask(second)
		want("one of them with a request", httpserver.Stats{Open: 2, Idle: 1})
		third := l.connect()
		want("a third closes the idle one", httpserver.Stats{Open: 2, Idle: 1, Evicted: 1})
		ask(third)
		synctest.Wait()
		fourth := l.connect()
		ask(fourth)
		want("a fourth waits", httpserver.Stats{Open: 3, Evicted: 1, Waited: 1})
		finish <- true
		want("one that became idle makes room", httpserver.Stats{Open: 2, Evicted: 2, Waited: 1})
		close(finish)
		for range 3 {
			if !<-answers {
				t.Error("a request was cut off")
			}
		}
		third.Close()
		fourth.Close()
	})
}
