package api_test

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// FuzzRequest sends any octets. The first request in them is answered as promised,
// or refused by net/http, which then closes the connection.
func FuzzRequest(f *testing.F) {
	s := start(f, nil)
	s.pets(f, 3)
	const key = "KEY" // stands for a valid key, which no fuzzer finds
	for _, seed := range []string{
		"GET /v1/pets?limit=2&status=sold HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer KEY\r\n\r\n",
		"HEAD /v1/pets/1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer KEY\r\nIf-None-Match: \"x\", W/\"y\"\r\n\r\n",
		"POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer KEY\r\nContent-Type: application/json\r\nContent-Length: 27\r\n\r\n{\"name\":\"x\",\"categoryId\":1}",
		"POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer KEY\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET http://y/v1/usage HTTP/1.0\r\nAuthorization: Bearer KEY\r\nAccept: application/problem+json\r\n\r\n",
		"DELETE /v1/pets/%2e%2e HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer KEY\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
		"CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /v1/pets?cursor=AQAAAAAAAAAAFBaS1zU HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer KEY\r\n\r\n",
		"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n",
		"HEAD /v1/pets/. HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /v1/pets HTTP/1.1\r\nHost: a\r\nHost: b\r\nAuthorization: Bearer KEY\r\n\r\n",
		"POST /v1/pets HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\nAuthorization: Bearer KEY\r\n\r\nxx",
		"GET /v1/pets HTTP/1.1\r\nHost: x\r\nExpect: more\r\nAuthorization: Bearer KEY\r\n\r\n",
		"GET /v1/%zz HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer KEY\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, octets []byte) {
		octets = bytes.ReplaceAll(octets, []byte(key), []byte(s.Key))
		conn := s.Dial(t)
		defer conn.Close()
		go func() {
			_, _ = conn.Write(octets)
			_ = conn.(*net.TCPConn).CloseWrite()
		}()
		from := bufio.NewReader(conn)
		begin := time.Now()
		for {
			resp, err := s.Read(from, string(octets))
			if err != nil {
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatalf("no answer after %v", time.Since(begin))
				}
				return // half a request, and the server has closed
			}
			if resp.StatusCode == http.StatusContinue {
				continue
			}
			switch {
			case resp.Header.Get("Cache-Control") == "no-cache" && resp.StatusCode < 400:
				// the document, which is a page and no response of the API
			case resp.StatusCode == 499:
				// net/http takes a client that has closed its side for one that has disconnected
			case resp.Header.Get("X-RateLimit-Limit") != "":
				s.Check(t, resp)
			case resp.StatusCode >= 400 && resp.Close && !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/"):
				// by net/http
			default:
				t.Errorf("status %d without the fields of the API: %v", resp.StatusCode, resp.Header)
			}
			return
		}
	})
}
