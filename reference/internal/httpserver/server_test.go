package httpserver_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/httpserver"
)

var hello = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "%s %s", r.Proto, r.RequestURI)
})

func TestServe(t *testing.T) {
	s := serve(t, hello, httpserver.Options{})
	resp, err := http.Get("http://" + s.addr + "/x")
	must(t, err)
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); string(body) != "HTTP/1.1 /x" {
		t.Errorf("the body is %q, want what the handler wrote", body)
	}
	if !s.Ready() {
		t.Error("a server that serves is not ready")
	}
	s.stop()
	if err := <-s.ended; err != nil {
		t.Errorf("Serve: %v, want no error once its context has ended", err)
	}
	if s.Ready() {
		t.Error("a server that has ended is ready")
	}
}

func TestDrainFinishesWhatWasBegun(t *testing.T) {
	begun, finish := make(chan bool), make(chan bool)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun <- true
		<-finish
		if err := r.Context().Err(); err != nil {
			t.Errorf("the context of a request under way has ended: %v", err)
		}
		fmt.Fprint(w, "done")
	})
	s := serve(t, h, httpserver.Options{})
	body := make(chan string)
	go func() {
		resp, err := http.Get("http://" + s.addr)
		if err != nil {
			body <- err.Error()
			return
		}
		defer resp.Body.Close()
		data, _ := io.ReadAll(resp.Body)
		body <- string(data)
	}()
	<-begun
	s.stop()
	for s.Ready() { // until the server has noticed
	}
	for { // until it accepts no more connections, although a request runs
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			break
		}
		c.Close()
	}
	close(finish)
	if got := <-body; got != "done" {
		t.Errorf("a request under way got %q, want its response", got)
	}
	if err := <-s.ended; err != nil {
		t.Errorf("Serve: %v, want no error: nothing was cut off", err)
	}
	if _, err := net.Dial("tcp", s.addr); err == nil {
		t.Error("the server still accepts connections")
	}
}

func TestDrainEnds(t *testing.T) {
	begun := make(chan bool)
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		begun <- true
		<-r.Context().Done()
	})
	s := serve(t, h, httpserver.Options{DrainTimeout: 50 * time.Millisecond})
	go http.Get("http://" + s.addr)
	<-begun
	s.stop()
	if err := <-s.ended; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Serve: %v, want to be told that a request was cut off", err)
	}
}

func TestListenerFails(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	l.Close()
	s, err := httpserver.New(hello, httpserver.Options{})
	must(t, err)
	if err := s.Serve(t.Context(), l); err == nil {
		t.Error("Serve returns no error for a listener that is closed")
	}
}

func TestNewRefusesWhatCannotBeServed(t *testing.T) {
	if _, err := httpserver.New(nil, httpserver.Options{}); err == nil {
		t.Error("a server without a handler")
	}
	if _, err := httpserver.New(hello, httpserver.Options{CertFile: "/nothing", KeyFile: "/nothing"}); err == nil {
		t.Error("a server without its certificate")
	}
}

// What is logged when the server is ready can be relied on.
func TestOnReady(t *testing.T) {
	var s *httpserver.Server
	ctx, cancel := context.WithCancel(t.Context())
	ready := false
	s, err := httpserver.New(http.NotFoundHandler(), httpserver.Options{OnReady: func() {
		ready = s.Ready()
		cancel()
	}})
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, s.Serve(ctx, l))
	if !ready {
		t.Error("OnReady was called before the server was ready, or not at all")
	}
}

func TestTLS(t *testing.T) {
	s := serve(t, hello, certificate(t))

	t.Run("speaks HTTP/2", func(t *testing.T) {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: insecure(), ForceAttemptHTTP2: true}}
		defer client.CloseIdleConnections()
		resp, err := client.Get("https://" + s.addr + "/x")
		must(t, err)
		defer resp.Body.Close()
		if body, _ := io.ReadAll(resp.Body); string(body) != "HTTP/2.0 /x" {
			t.Errorf("the body is %q, want HTTP/2", body)
		}
	})
	t.Run("takes TLS 1.2 and nothing older", func(t *testing.T) {
		for version, ok := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
			c := insecure()
			c.MinVersion, c.MaxVersion = version, version
			conn, err := tls.Dial("tcp", s.addr, c)
			if (err == nil) != ok {
				t.Errorf("%s: %v, want it to be taken: %t", tls.VersionName(version), err, ok)
			}
			if err == nil {
				conn.Close()
			}
		}
	})
}
