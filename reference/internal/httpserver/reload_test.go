package httpserver_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/animalstore/gatehouse/reference/internal/httpserver"
)

func TestReloadReplacesTheHandlerForNewRequestsOnly(t *testing.T) {
	begun, finish := make(chan bool), make(chan bool)
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		begun <- true
		<-finish
		io.WriteString(w, "old")
	}), httpserver.Options{})
	running, idle := s.dial(t), s.dial(t)
	fmt.Fprint(running, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	<-begun
	must(t, s.Reload(text("new"), httpserver.Options{}))
	if resp, body := exchange(t, idle); body != "new" || resp.Close {
		t.Errorf("a request after the reload got %q, connection closes: %v; want new on a connection that stays open", body, resp.Close)
	}
	close(finish)
	resp, err := http.ReadResponse(bufio.NewReader(running), nil)
	if err != nil {
		t.Fatalf("the request that ran during the reload was cut off: %v", err)
	}
	if body, _ := io.ReadAll(resp.Body); string(body) != "old" {
		t.Errorf("the request that ran during the reload got %q, want old", body)
	}
}

// A connection that waits is served once the limit is raised.
func TestReloadOfConnectionLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun atomic.Int64
		finish := make(chan bool)
		busy := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			begun.Add(1)
			<-finish
		})
		s := newServer(t, busy, httpserver.Options{MaxConns: 1})
		l, _, _ := serveOnPipe(t, s)
		answers := make(chan bool, 2)
		for range 2 {
			c := l.connect()
			go func() { answers <- request(c) }()
			synctest.Wait()
		}
		must(t, s.Reload(busy, httpserver.Options{MaxConns: 2}))
		synctest.Wait()
		if waited, n := s.Stats().Waited, begun.Load(); waited != 1 || n != 2 {
			t.Errorf("%d connections waited and after the reload %d requests run, want 1 and 2", waited, n)
		}
		close(finish)
		if first, second := <-answers, <-answers; !first || !second {
			t.Error("a request was cut off")
		}
	})
}

func TestReloadOfCertificates(t *testing.T) {
	first, second := certificate(t), certificate(t)
	s := serve(t, text("first"), first)
	shown := func() string {
		t.Helper()
		return string(s.dialTLS(t).(*tls.Conn).ConnectionState().PeerCertificates[0].Raw)
	}
	before := shown()

	broken := second
	broken.KeyFile = first.KeyFile
	if err := s.Reload(text("broken"), broken); err == nil || !strings.Contains(err.Error(), "private key") {
		t.Errorf("Reload with the key of another certificate = %v, want an error about it", err)
	}
	if _, body := exchange(t, s.dialTLS(t)); body != "first" || shown() != before {
		t.Errorf("a reload that was refused has changed something: the body is %q", body)
	}
	must(t, s.Reload(text("second"), second))
	if _, body := exchange(t, s.dialTLS(t)); body != "second" || shown() == before {
		t.Errorf("after the reload the body is %q, and the certificate is the old one: %v", body, shown() == before)
	}
	must(t, os.Remove(second.KeyFile))
	if err := s.Reload(text("gone"), second); err == nil {
		t.Error("Reload without the key's file = nil, want an error")
	}
}
