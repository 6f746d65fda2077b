package httpserver_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"testing"
)

func TestTLS(t *testing.T) {
	s := serve(t, hello, certificate(t))

	t.Run("speaks HTTP/2", func(t *testing.T) {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: insecure(), ForceAttemptHTTP2: true}}
		defer client.CloseIdleConnections()
		resp, err := client.Get("https://" + s.addr + "/x")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if body, _ := io.ReadAll(resp.Body); string(body) != "HTTP/2.0 /x" {
			t.Errorf("the body is %q, want HTTP/2", body)
		}
	})
	t.Run("serves many requests on one connection", func(t *testing.T) {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: insecure(), ForceAttemptHTTP2: true, MaxConnsPerHost: 1}}
		defer client.CloseIdleConnections()
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				resp, err := client.Get("https://" + s.addr + "/x")
				if err != nil {
					t.Error(err)
					return
				}
				resp.Body.Close()
			})
		}
		wg.Wait()
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

func TestFailedHandshakesDoNotFillTheLog(t *testing.T) {
	var log bytes.Buffer // read when the server has ended
	o := certificate(t)
	o.MaxConns, o.Logger = 50, slog.New(slog.NewTextHandler(&log, nil))
	s := serve(t, hello, o)
	c := s.dial(t)
	if _, err := c.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, c)
	s.stop()
	<-s.ended
	if log.Len() > 0 {
		t.Errorf("the log has %q, want nothing about a client that does not speak TLS", log.String())
	}
}
