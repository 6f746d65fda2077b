package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/internal/testcheck"
)

// start returns the address of a gateway in front of backend.
func start(t *testing.T, backend http.HandlerFunc) string {
	t.Helper()
	behind := httptest.NewServer(backend)
	t.Cleanup(behind.Close)
	target, err := url.Parse(behind.URL)
	testcheck.NoError(t, err)
	h, err := newHandler(target)
	testcheck.NoError(t, err)
	front := httptest.NewServer(h)
	t.Cleanup(front.Close)
	return front.Listener.Addr().String()
}

// send sends a request as it is written, and returns the response with its body.
func send(t *testing.T, address, request string) (*http.Response, string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	testcheck.NoError(t, err)
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	for err == nil && resp.StatusCode < 200 {
		resp, err = http.ReadResponse(in, nil)
	}
	testcheck.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	testcheck.NoError(t, err)
	return resp, string(body)
}

// A service resolves more paths than the mux does. What is public here must not be another
// path there, and no client chooses the host.
func TestTargets(t *testing.T) {
	const refused = "400"
	for target, want := range map[string]string{
		"GET /public/../pets": refused, "GET /public/%2e%2e/pets": refused, "GET /public/%2E./pets": refused,
		"GET /public/..%2fpets": refused, "GET /public/..%5cpets": refused, "GET /public/..;x=1/pets": refused,
		"GET /pets/.": refused, "GET /%2e/pets": refused, "GET /..": refused, "GET http://a/public/../pets": refused,
		"GET *": refused, "GET http:x": refused, "GET http://a": refused,
		"CONNECT a:443": refused, "CONNECT /public/": refused,
		"GET /public/...": "/public/...", "GET /public/a..b": "/public/a..b", "GET http://a/public/x": "/public/x",
		"GET /public/a%2Fb": "/public/a/b", "GET /pets/rex": "401", "GET /cats": "404",
	} {
		address := start(t, service)
		resp, body := send(t, address, target+" HTTP/1.1\r\nHost: x\r\n\r\n")
		got, found := strings.CutPrefix(strings.TrimSpace(body), "gets ")
		if !found {
			got = resp.Status[:3]
		}
		if got != want {
			t.Errorf("%s: %s %q, want %s", target, resp.Status, body, want)
		}
		if got := resp.Header["X-Ratelimit-Limit"]; len(got) != 1 || got[0] != "2" {
			t.Errorf("%s: X-RateLimit-Limit: %q, want that of the gateway, 2", target, got)
		}
	}
}

// The service believes X-Owner, which clients must not choose, and gets no token.
func TestFields(t *testing.T) {
	address := start(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // sends 100 if the client asks for it
		for _, name := range []string{"Authorization", "X_owner", "Connection", "Upgrade"} {
			if got := r.Header[name]; got != nil {
				t.Errorf("the service gets %s: %q, want none", name, got)
			}
		}
		if got := r.Header.Get("X-Forwarded-For"); got != "127.0.0.1" {
			t.Errorf("the service gets X-Forwarded-For: %q, want the client's", got)
		}
		w.Header().Set("X-Request-Id", "42")
		w.Header().Set("Cache-Control", "max-age=60")
		service(w, r)
	})
	resp, body := send(t, address, "POST /pets/rex HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer token-of-ann\r\n"+
		"X-Owner: bob\r\nX_Owner: bob\r\nX-Forwarded-For: 8.8.8.8\r\nX-Request-Id: r-17\r\nExpect: 100-continue\r\n"+
		"Connection: Upgrade, X-Owner\r\nUpgrade: h2c\r\nContent-Length: 4\r\n\r\npets")
	if want := "ann gets /pets/rex\n"; body != want {
		t.Errorf("%s %q, want %q", resp.Status, body, want)
	}
	for name, want := range map[string]string{"X-Ratelimit-Limit": "3", "Cache-Control": "no-store", "X-Ratelimit-Remaining": "2", "X-Request-Id": "r-17"} {
		if got := resp.Header[name]; len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %s", name, got, want)
		}
	}
}

// What fails behind the gateway is answered in the envelope, with the limit.
func TestErrors(t *testing.T) {
	for request, want := range map[string]string{
		"GET /public/x HTTP/1.1\r\nHost: x\r\n\r\n": `{"code":"bad_gateway",`,
		"POST /public/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n200000\r\n" + strings.Repeat("x", 0x200000): `{"code":"body_too_large",`,
	} {
		address := start(t, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			panic(http.ErrAbortHandler) // the connection breaks
		})
		resp, body := send(t, address, request)
		if !strings.HasPrefix(body, want) || resp.Header.Get("X-Ratelimit-Remaining") != "1" {
			t.Errorf("%s %q, %s left, want %s and 1", resp.Status, body, resp.Header.Get("X-Ratelimit-Remaining"), want)
		}
	}
}
