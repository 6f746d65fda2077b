package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/middleware/limit"
)

// sends is a backend that answers every request with these bytes.
func sends(t *testing.T, response string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					io.WriteString(conn, response)
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// net/http panics if a handler sends such a status, or sends 200 after 1xx. The largest
// comes over HTTP/2.
func TestImpossibleStatus(t *testing.T) {
	for status, want := range map[int]int{-200: 502, 0: 502, 99: 502, 103: 502, 199: 502, 200: 200, 999: 999, 1000: 502} {
		proxy := toURL(t, "http://192.0.2.1")
		proxy.Transport = roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: make(http.Header), Body: http.NoBody}, nil
		})
		srv, client := listen(t, newStack(t, proxy, limit.Options{ChargeIf: limit.NotServerError}), false)
		resp, body := send(t, client, "GET", srv.URL, nil)
		if resp.StatusCode != want || want == 502 && !strings.HasPrefix(body, `{"code":"bad_gateway",`) {
			t.Errorf("status %d: %d %s, want %d", status, resp.StatusCode, body, want)
		}
		wantMiddlewares(t, resp.Header)
	}
}

// The backend gets no trailers of the client, and is not told to wait for any.
func TestTrailersOfTheClient(t *testing.T) {
	srv, _ := listen(t, newStack(t, to(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, r.Trailer)
	}), limit.Options{}), false)
	for _, announcement := range []string{"Trailer: X-Sum\r\n", ""} {
		_, body := raw(t, srv, "POST / HTTP/1.1\r\nHost: x\r\n"+announcement+"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-Sum: 1\r\n\r\n")
		if body != "map[]" {
			t.Errorf("announced with %q, the backend gets the trailers %s, want none", announcement, body)
		}
	}
}

// A field of middlewares is not contradicted in the trailers.
func TestTrailersOfTheBackend(t *testing.T) {
	const fields = "X-RateLimit-Remaining: 5\r\nX-Request-Id: b\r\nAlt-Svc: h3=\":8443\"\r\nCache-Control: public\r\nServer-Timing: db;dur=5\r\nX-Rows: 17\r\n"
	const framing = "Content-Length: 9\r\nTransfer-Encoding: gzip\r\nConnection: X-Hop\r\nX-Hop: 1\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n" +
		"Content-Range: bytes 0-1/9\r\nHost: a\r\nTe: trailers\r\nTrailer: X-A\r\nUpgrade: h2c\r\nKeep-Alive: max=1\r\nProxy-Connection: close\r\nProxy-Authenticate: Basic\r\n"
	for name, announcement := range map[string]string{
		"announced":         "Trailer: X-RateLimit-Remaining, X-Request-Id, Alt-Svc, Cache-Control, Server-Timing, X-Rows\r\n",
		"announced in part": "Trailer: X-Rows, X-Request-Id\r\n",
		"not announced":     "",
	} {
		for protocol, http2 := range protocols {
			t.Run(name+"/"+protocol, func(t *testing.T) {
				response := "HTTP/1.1 200 OK\r\n" + announcement + "Transfer-Encoding: chunked\r\n\r\n4\r\npets\r\n0\r\n" + fields + framing + "\r\n"
				s := newStack(t, toURL(t, sends(t, response)), limit.Options{})
				srv, client := listen(t, s, http2)
				resp, body := send(t, client, "GET", srv.URL, nil)
				if got, want := text(resp.Trailer), "Server-Timing: db;dur=5\nX-Rows: 17"; body != "pets" || got != want {
					t.Errorf("%q with the trailers\n%s\nwant pets with\n%s", body, got, want)
				}
				wantMiddlewares(t, resp.Header)
				srv, client = listen(t, newGateway(t, toURL(t, sends(t, response)), nil), http2)
				resp, _ = send(t, client, "GET", srv.URL, nil)
				if resp.Trailer.Get("Alt-Svc") != "" || resp.Trailer.Get("Content-Length") != "" || resp.Trailer.Get("X-RateLimit-Remaining") != "5" || resp.Trailer.Get("X-Rows") != "17" {
					t.Errorf("without middlewares: the trailers\n%s\nwant all but Alt-Svc and framing", text(resp.Trailer))
				}
			})
		}
	}
}
