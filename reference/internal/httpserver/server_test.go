package httpserver_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/httpserver"
)

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

func TestWhatCannotBeServed(t *testing.T) {
	if _, err := httpserver.New(nil, httpserver.Options{}); err == nil {
		t.Error("a server without a handler")
	}
	for file, want := range map[string]string{"/nothing": "no such file", t.TempDir(): "is a directory", os.DevNull: "failed to find any PEM data"} {
		for _, o := range []httpserver.Options{{CertFile: file, KeyFile: file}, {CertFile: certificate(t).CertFile, KeyFile: file}} {
			if _, err := httpserver.New(hello, o); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("New with %s as the certificate or its key = %v, want %q", file, err, want)
			}
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	l.Close()
	if err := newServer(t, hello, httpserver.Options{}).Serve(t.Context(), l); err == nil {
		t.Error("Serve returns no error for a listener that is closed")
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
