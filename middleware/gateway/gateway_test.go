package gateway_test

import (
	"net/http"
	"net/http/httputil"
	"net/netip"
	"testing"

	"github.com/animalstore/gatehouse/middleware/clientip"
)

// New leaves the proxy of the service as it is.
func TestNewCopies(t *testing.T) {
	proxy := to(t, func(http.ResponseWriter, *http.Request) {})
	newGateway(t, proxy, nil)
	if proxy.Transport != nil || proxy.ModifyResponse != nil || proxy.ErrorHandler != nil {
		t.Errorf("New has changed its argument: %+v", proxy)
	}
}

// The tag of a compressed response would not fit what the gateway made of it.
func TestCompressionIsThatOfTheClient(t *testing.T) {
	for _, accept := range []string{"", "gzip"} {
		srv, client := listen(t, newGateway(t, to(t, func(_ http.ResponseWriter, r *http.Request) {
			if got := r.Header.Get("Accept-Encoding"); got != accept {
				t.Errorf("Accept-Encoding: %q arrives, the client sends %q", got, accept)
			}
		}), nil), false)
		var fields []string
		if accept != "" {
			fields = []string{"Accept-Encoding", accept}
		}
		send(t, client, "GET", srv.URL, nil, fields...)
	}
}

// What a client writes into X-Forwarded-For does not reach the backend, unless a trusted
// proxy has added to it.
func TestForwardedFor(t *testing.T) {
	got := make(chan []string, 1)
	backend := to(t, func(_ http.ResponseWriter, r *http.Request) { got <- r.Header["X-Forwarded-For"] })
	source, err := clientip.FromXForwardedFor([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")})
	if err != nil {
		t.Fatal(err)
	}
	behind := *backend
	behind.Rewrite = func(p *httputil.ProxyRequest) {
		backend.Rewrite(p)
		p.Out.Header.Set("X-Forwarded-For", source.Addr(p.In).String())
	}
	for _, tt := range []struct {
		name  string
		proxy *httputil.ReverseProxy
		want  string
	}{
		{"reached directly", backend, "127.0.0.1"},
		{"behind a proxy", &behind, "203.0.113.9"},
	} {
		srv, client := listen(t, newGateway(t, tt.proxy, nil), false)
		send(t, client, "GET", srv.URL, nil, "X-Forwarded-For", "8.8.8.8, 203.0.113.9")
		if lines := <-got; len(lines) != 1 || lines[0] != tt.want {
			t.Errorf("%s: X-Forwarded-For %q, want %s", tt.name, lines, tt.want)
		}
	}
}

// Without middleware.RequestID, the ID that the client sends reaches the backend.
func TestRequestIDOfTheClient(t *testing.T) {
	srv, client := listen(t, newGateway(t, to(t, func(_ http.ResponseWriter, r *http.Request) {
		if got := r.Header["X-Request-Id"]; len(got) != 1 || got[0] != "a" {
			t.Errorf("X-Request-Id: %q, want a", got)
		}
	}), nil), false)
	send(t, client, "GET", srv.URL, nil, "X-Request-Id", "a")
}
