package httpserver_test

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/httpserver"
)

func TestStatsOfConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finish := make(chan bool)
		s, err := httpserver.New(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				<-finish
			}
		}), httpserver.Options{MaxConns: 2, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		want := func(what string, want httpserver.Stats) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(want, s.Stats()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		want("before Serve", httpserver.Stats{})
		l, stop, ended := serveOnPipe(t, s)
		l.connect()
		slow := l.connect()
		want("two connections without a request", httpserver.Stats{Open: 2, Idle: 2})
		go slow.Write([]byte("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"))
		want("one of them with a request", httpserver.Stats{Open: 2, Idle: 1})
		third := l.connect()
		want("a third closes the idle one", httpserver.Stats{Open: 2, Idle: 1, Evicted: 1})
		go third.Write([]byte("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"))
		synctest.Wait()
		go l.connect()
		want("a fourth waits", httpserver.Stats{Open: 3, Evicted: 1, Waited: 1})
		slow.Close()
		third.Close()
		close(finish)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestStatsOfRefusedConnections(t *testing.T) {
	s := serveOn(t, hello, httpserver.Options{MaxConnsPerNetwork: 1}, func(l net.Listener) net.Listener {
		return farListener{l, net.TCPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.1:1"))}
	})
	if !request(s.dial(t)) || request(s.dial(t)) {
		t.Fatal("want the first connection served and the second one refused")
	}
	if got := s.Stats().Refused; got != 1 {
		t.Errorf("%d connections are refused, want 1", got)
	}
}
