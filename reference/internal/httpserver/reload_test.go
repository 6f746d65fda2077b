package httpserver_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/httpserver"
)

// text returns a handler that answers with a text.
func text(s string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, s) })
}

// exchange sends a request on c and returns the response and its body.
func exchange(t *testing.T, c net.Conn) (*http.Response, string) {
	t.Helper()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	must(t, err)
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp, string(body)
}

func mustReload(t *testing.T, s *httpserver.Server, h http.Handler, o httpserver.Options) {
	t.Helper()
	must(t, s.Reload(h, o))
}

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
	mustReload(t, s.Server, text("new"), httpserver.Options{})
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

func TestReloadBeforeServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := httpserver.New(text("old"), httpserver.Options{})
		must(t, err)
		mustReload(t, s, text("new"), httpserver.Options{MaxConns: 1})
		if err := s.Reload(nil, httpserver.Options{}); err == nil {
			t.Error("Reload without a handler = nil, want an error")
		}
		l, stop, ended := serveOnPipe(t, s)
		c := l.connect()
		if _, body := exchange(t, c); body != "new" {
			t.Errorf("the server answers %q, want new", body)
		}
		stop()
		<-ended
		mustReload(t, s, text("late"), httpserver.Options{MaxConns: 2}) // has no effect
	})
}

// net/http reads these timeouts while it serves, so they stay as they are.
func TestReloadKeepsTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l, _, _ := serveInBubble(t, httpserver.Options{IdleTimeout: time.Hour})
		old := l.connect()
		exchange(t, old)
		mustReload(t, s, hello, httpserver.Options{IdleTimeout: time.Minute})
		young := l.connect()
		exchange(t, young)
		time.Sleep(time.Hour - time.Second)
		for _, c := range []net.Conn{old, young} {
			if resp, _ := exchange(t, c); resp.Close {
				t.Error("a connection closes after a reload that cannot change its timeouts")
			}
		}
	})
}

func TestReloadOfConnectionLimits(t *testing.T) {
	begun, finish := make(chan bool), make(chan bool)
	busy := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		begun <- true
		<-finish
	})
	s := serve(t, busy, httpserver.Options{MaxConns: 1})
	answers := make(chan bool, 2)
	for i := range 2 {
		c := s.dial(t)
		go func() { answers <- request(c) }()
		if i == 0 {
			<-begun
		}
	}
	mustReload(t, s.Server, busy, httpserver.Options{MaxConns: 2})
	<-begun // the connection that waited
	close(finish)
	for range 2 {
		if !<-answers {
			t.Error("a request was cut off")
		}
	}
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
	mustReload(t, s.Server, text("second"), second)
	if _, body := exchange(t, s.dialTLS(t)); body != "second" || shown() == before {
		t.Errorf("after the reload the body is %q, and the certificate is the old one: %v", body, shown() == before)
	}
	must(t, os.Remove(second.KeyFile))
	if err := s.Reload(text("gone"), second); err == nil {
		t.Error("Reload without the key's file = nil, want an error")
	}
}

// However often the options are replaced, no request fails.
func TestReloadUnderLoad(t *testing.T) {
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	for name, options := range map[string]func(*testing.T) httpserver.Options{
		"HTTP/1.1": func(*testing.T) httpserver.Options { return httpserver.Options{} },
		"HTTP/2":   certificate,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			s := serve(t, echo, o)
			url := "http://" + s.addr
			if o.CertFile != "" {
				url = "https://" + s.addr
			}
			transport := &http.Transport{TLSClientConfig: insecure(), ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 8}
			defer transport.CloseIdleConnections()
			ctx, stop := context.WithCancel(t.Context())
			var clients sync.WaitGroup
			var asked atomic.Int64
			for i := range 8 {
				clients.Go(func() {
					for n := 0; ctx.Err() == nil; n++ {
						body := fmt.Sprint(i, n)
						// A request with a body that cannot be sent twice.
						r, err := http.NewRequestWithContext(t.Context(), "POST", url, io.NopCloser(strings.NewReader(body)))
						if err != nil {
							t.Error(err)
							return
						}
						resp, err := transport.RoundTrip(r)
						if err != nil {
							t.Errorf("during the reloads: %v", err)
							return
						}
						got, err := io.ReadAll(resp.Body)
						resp.Body.Close()
						if err != nil || string(got) != body || resp.Proto != name+".0" && resp.Proto != name {
							t.Errorf("during the reloads: %q in %s, %v; want %q in %s", got, resp.Proto, err, body, name)
						}
						asked.Add(1)
					}
				})
			}
			for i := range 30 {
				o.MaxConns = 100 + i
				mustReload(t, s.Server, echo, o)
				for before := asked.Load(); asked.Load() < before+20 && !t.Failed(); {
					time.Sleep(time.Millisecond)
				}
			}
			stop()
			clients.Wait()
		})
	}
}
