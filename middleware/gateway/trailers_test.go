package gateway_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/ratelimit"
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

// net/http panics if a handler sends such a status.
func TestImpossibleStatus(t *testing.T) {
	for _, status := range []string{"000", "099"} {
		s := newStack(t, toURL(t, sends(t, "HTTP/1.1 "+status+" Low\r\nContent-Length: 0\r\n\r\n")), ratelimit.Options{Refund: true})
		srv, client := listen(t, s, false)
		resp, body := send(t, client, "GET", srv.URL, nil)
		if resp.StatusCode != 502 || !strings.HasPrefix(body, `{"code":"bad_gateway",`) {
			t.Errorf("status %s: %d %s, want 502 bad_gateway", status, resp.StatusCode, body)
		}
		wantMiddlewares(t, resp.Header)
	}
}

// A field of middlewares is not contradicted in the trailers.
func TestTrailersOfTheBackend(t *testing.T) {
	const fields = "X-RateLimit-Remaining: 5\r\nX-Request-Id: b\r\nAlt-Svc: h3=\":8443\"\r\nCache-Control: public\r\nServer-Timing: db;dur=5\r\nX-Rows: 17\r\n"
	for name, announcement := range map[string]string{
		"announced":         "Trailer: X-RateLimit-Remaining, X-Request-Id, Alt-Svc, Cache-Control, Server-Timing, X-Rows\r\n",
		"announced in part": "Trailer: X-Rows, X-Request-Id\r\n",
		"not announced":     "",
	} {
		for protocol, http2 := range protocols {
			t.Run(name+"/"+protocol, func(t *testing.T) {
				response := "HTTP/1.1 200 OK\r\n" + announcement + "Transfer-Encoding: chunked\r\n\r\n4\r\npets\r\n0\r\n" + fields + "\r\n"
				s := newStack(t, toURL(t, sends(t, response)), ratelimit.Options{})
				srv, client := listen(t, s, http2)
				resp, body := send(t, client, "GET", srv.URL, nil)
				if got, want := text(resp.Trailer), "Server-Timing: db;dur=5\nX-Rows: 17"; body != "pets" || got != want {
					t.Errorf("%q with the trailers\n%s\nwant pets with\n%s", body, got, want)
				}
				wantMiddlewares(t, resp.Header)
				srv, client = listen(t, newGateway(t, toURL(t, sends(t, response)), nil), http2)
				resp, _ = send(t, client, "GET", srv.URL, nil)
				if resp.Trailer.Get("Alt-Svc") != "" || resp.Trailer.Get("X-RateLimit-Remaining") != "5" || resp.Trailer.Get("X-Rows") != "17" {
					t.Errorf("without middlewares: the trailers\n%s\nwant all but Alt-Svc", text(resp.Trailer))
				}
			})
		}
	}
}
