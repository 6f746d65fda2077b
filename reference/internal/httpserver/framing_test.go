package httpserver_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/httpserver"
)

const (
	both    = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
	chunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
	length  = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx"
)

// Where two readers could see different ends of a request, what follows on the
// connection must not be read as a request (RFC 9112 section 6.1).
func TestAmbiguousRequestsCloseTheConnection(t *testing.T) {
	for _, tt := range []struct {
		name   string
		octets string
		closes bool
	}{
		{"both", both, true},
		{"both in the other order", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n", true},
		{"both in odd case", "POST / HTTP/1.1\r\nHost: x\r\ncOnTeNt-LeNgTh: 4\r\ntRaNsFeR-eNcOdInG:chunked\r\n\r\n0\r\n\r\n", true},
		{"both with bare line feeds", "POST / HTTP/1.1\nHost: x\nContent-Length: 4\nTransfer-Encoding: chunked\n\n0\r\n\r\n", true},
		{"both after another request", length + both, true},
		{"both after a body without a line feed", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 16\r\n\r\nTransfer-Encodin" + both, true},
		{"Transfer-Encoding in HTTP/1.0", "POST / HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n", true},
		{"Transfer-Encoding alone in HTTP/1.0", "POST / HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n", true},
		{"one after the other", chunked + length + chunked, false},
		{"names that are longer", "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encodings: x\r\nX-Content-Length: 4\r\nContent-Length: 0\r\n\r\n", false},
		{"values", "GET / HTTP/1.1\r\nHost: x\r\nX: Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
			}), httpserver.Options{})
			for _, piece := range []int{1 << 20, 1, 7} {
				checkCloses(t, s.dial(t), tt.octets, piece, tt.closes)
			}
		})
	}
}

// In TLS it cannot be seen. The package documentation says what follows from that.
func TestAmbiguousRequestsOverTLSKeepTheConnection(t *testing.T) {
	s := serve(t, hello, certificate(t))
	checkCloses(t, s.dialTLS(t), both, 1<<20, false)
}

// checkCloses sends octets in pieces, and then a request that is answered only if
// the connection is still open.
func checkCloses(t *testing.T, c net.Conn, octets string, piece int, closes bool) {
	t.Helper()
	octets += "GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	requests := strings.Count(octets, " HTTP/1.")
	go func() {
		for rest := octets; len(rest) > 0; {
			n := min(piece, len(rest))
			if _, err := io.WriteString(c, rest[:n]); err != nil {
				return
			}
			rest = rest[n:]
		}
	}()
	from := bufio.NewReader(c)
	answered := 0
	var last *http.Response
	for {
		resp, err := http.ReadResponse(from, nil)
		if err != nil {
			break
		}
		io.Copy(io.Discard, resp.Body)
		answered, last = answered+1, resp
	}
	if last == nil {
		t.Fatal("nothing is answered")
	}
	got := fmt.Sprintf("%d of %d requests answered", answered, requests)
	if closed := answered < requests; closed != closes || !last.Close {
		t.Errorf("in pieces of %d: %s, the last one closes: %v; want that the connection is closed before the last: %v", piece, got, last.Close, closes)
	}
}
