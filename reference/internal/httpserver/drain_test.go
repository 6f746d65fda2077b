package httpserver_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/httpserver"
)

// While load balancers notice, the server serves on, and no connection is cut
// before its client was told.
func TestDrainDelayAnnouncesTheEndOfConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const delay = 10 * time.Second
		s, l, stop, ended := serveInBubble(t, httpserver.Options{DrainDelay: delay})
		idle := l.connect()
		if !request(idle) {
			t.Fatal("the server does not serve")
		}
		begin := time.Now()
		stop()
		synctest.Wait()
		if s.Ready() {
			t.Error("the server is ready while it drains")
		}
		time.Sleep(delay - time.Second)
		for name, c := range map[string]net.Conn{"a new": l.connect(), "an idle": idle} {
			fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatalf("%s connection during the delay: %v, want a response", name, err)
			}
			if !resp.Close {
				t.Errorf("the response on %s connection does not announce that it closes", name)
			}
			c.Close()
		}
		<-ended
		if took := time.Since(begin); took < delay || took > delay+5*time.Second {
			t.Errorf("the server ended after %v, want about %v", took, delay)
		}
	})
}

func TestDrainDelaySendsGOAWAY(t *testing.T) {
	o := certificate(t)
	o.DrainDelay = 10 * time.Second
	synctest.Test(t, func(t *testing.T) {
		_, l, stop, _ := serveInBubble(t, o)
		dialled := 0
		transport := &http.Transport{
			TLSClientConfig: insecure(), ForceAttemptHTTP2: true,
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				dialled++
				return l.connect(), nil
			},
		}
		get := func() {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), "GET", "https://server", nil)
			must(t, err)
			resp, err := transport.RoundTrip(r)
			must(t, err)
			resp.Body.Close()
			if resp.ProtoMajor != 2 {
				t.Fatalf("answered in %s, want HTTP/2", resp.Proto)
			}
			synctest.Wait()
		}
		get()
		get()
		if dialled != 1 {
			t.Fatalf("two requests took %d connections, want 1", dialled)
		}
		stop()
		synctest.Wait()
		get() // on the connection that is open, and announces its end
		get()
		if dialled != 2 {
			t.Errorf("a client in HTTP/2 has dialled %d times, want a second time after GOAWAY", dialled)
		}
		transport.CloseIdleConnections()
	})
}

// A client whose connection waits for room when the drain begins is not served any more, and
// finds out immediately: before the end of the request that takes the room, which is finished.
func TestDrainClosesTheConnectionThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finish := make(chan bool)
		s := newServer(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-finish
			if err := r.Context().Err(); err != nil {
				t.Errorf("the context of a request under way has ended: %v", err)
			}
		}), httpserver.Options{MaxConns: 1, DrainTimeout: time.Hour})
		l, stop, _ := serveOnPipe(t, s)
		answered := make(chan bool, 1)
		running := l.connect()
		go func() { answered <- request(running) }()
		synctest.Wait()
		waiting := l.connect()
		must(t, waiting.SetDeadline(time.Now().Add(time.Minute)))
		stop()
		if !isClosed(waiting) {
			t.Error("a minute after the drain began, the connection that waits is still open")
		}
		close(finish)
		if !<-answered {
			t.Error("the request that was running was cut off")
		}
	})
}
