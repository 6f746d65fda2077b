package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/examples/internal/demo"
)

// gate is a gateway in front of two services, all of them real servers.
type gate struct {
	url    string
	key    string
	orders *httptest.Server
}

func open(t *testing.T) gate {
	t.Helper()
	verifier, key, err := demo.OneKey("ann", free)
	if err != nil {
		t.Fatal(err)
	}
	serve := func(h http.Handler) (*httptest.Server, *url.URL) {
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		u, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		return server, u
	}
	_, pets := serve(newService("pets"))
	orders, toOrders := serve(newService("orders"))
	h, err := newHandler(verifier.Verify, pets, toOrders)
	if err != nil {
		t.Fatal(err)
	}
	front, _ := serve(h)
	return gate{front.URL, key, orders}
}

// get returns the status line, the header lines and the body of a response.
func (g gate) get(t *testing.T, path string, fields ...string) (status string, header []string, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", g.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for name, lines := range resp.Header {
		for _, line := range lines {
			header = append(header, name+": "+line)
		}
	}
	return resp.Proto + " " + resp.Status, header, string(all)
}

// A client gets the fields of the gateway, and those of a service that are about its answer.
func TestFields(t *testing.T) {
	g := open(t)
	status, header, body := g.get(t, "/basket/", "Authorization", "Bearer "+g.key, "X-Request-Id", "r-17")
	if status != "HTTP/1.1 200 OK" || body != "orders of ann: /basket/\n" {
		t.Errorf("GET /basket/: %s %q, want the orders of ann", status, body)
	}
	for _, want := range []string{
		"Cache-Control: max-age=60", "Deprecation: @1796083200", `Link: </orders/>; rel="successor-version"`,
		"Sunset: Thu, 05 Dec 2030 00:00:00 GMT", "X-Ratelimit-Limit: 60", "X-Ratelimit-Remaining: 59", "X-Request-Id: r-17",
	} {
		if !slices.Contains(header, want) {
			t.Errorf("GET /basket/ has the fields %q, want %s among them", header, want)
		}
	}
	for path, want := range map[string]string{"/pets/rex": "401 Unauthorized", "/cats": "401 Unauthorized"} {
		if status, _, _ := g.get(t, path); status != "HTTP/1.1 "+want {
			t.Errorf("GET %s without a key: %s, want %s", path, status, want)
		}
	}
	if status, _, _ := g.get(t, "/cats", "Authorization", "Bearer "+g.key); status != "HTTP/1.1 404 Not Found" {
		t.Errorf("GET /cats: %s, want 404", status)
	}
}

// One service that is down does not affect the other, and is not charged to clients.
func TestServiceIsDown(t *testing.T) {
	g := open(t)
	g.orders.Close()
	auth := []string{"Authorization", "Bearer " + g.key}
	if status, header, body := g.get(t, "/orders/17", auth...); status != "HTTP/1.1 502 Bad Gateway" ||
		!strings.HasPrefix(body, `{"code":"bad_gateway",`) || !slices.Contains(header, "X-Ratelimit-Limit: 60") {
		t.Errorf("the service that is down: %s %q %s, want 502 bad_gateway with the limit", status, header, body)
	}
	if _, header, body := g.get(t, "/pets/rex", auth...); body != "pets of ann: /pets/rex\n" || !slices.Contains(header, "X-Ratelimit-Remaining: 59") {
		t.Errorf("the other one: %q %s, want its response, and 59 left", header, body)
	}
}

// A service believes X-Owner, which clients must not choose.
func TestOwnerIsThatOfTheKey(t *testing.T) {
	g := open(t)
	if _, _, body := g.get(t, "/pets/rex", "Authorization", "Bearer "+g.key, "X-Owner", "bob"); body != "pets of ann: /pets/rex\n" {
		t.Errorf("a request with X-Owner of its own: %q, want that of ann", body)
	}
}

func TestGuestsAreLimited(t *testing.T) {
	g := open(t)
	for range 22 { // a minute may end meanwhile
		if status, _, _ := g.get(t, "/pets/rex"); status == "HTTP/1.1 429 Too Many Requests" {
			return
		}
	}
	t.Error("no request of 22 without a key is limited, want 10 per minute")
}
