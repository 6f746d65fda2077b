package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/middleware/apikey"
)

// gate is a gateway in front of two services, all of them real servers.
type gate struct {
	url    string
	key    string
	orders *httptest.Server
}

func open(t *testing.T) gate {
	t.Helper()
	format, err := apikey.NewFormat("demo_")
	if err != nil {
		t.Fatal(err)
	}
	secret := format.Generate()
	store := keys{secret.Digest(): {Principal: apikey.Principal{KeyID: apikey.NewKeyID(), Owner: "ann", Plan: free}}}
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
	h, err := newHandler(format, store, pets, toOrders)
	if err != nil {
		t.Fatal(err)
	}
	front, _ := serve(h)
	return gate{front.URL, secret.Reveal(), orders}
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
			if name == "Date" || name == "X-Ratelimit-Reset" {
				line = "…"
			}
			header = append(header, name+": "+line)
		}
	}
	slices.Sort(header)
	return resp.Proto + " " + resp.Status, header, string(all)
}

// The commands in the README print what it shows.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	g := open(t)
	_, rest, _ := strings.Cut(string(readme), "\n    $ ")
	session, _, _ := strings.Cut(rest, "\n\n- ")
	commands := strings.Split(session, "\n    $ ")
	for _, command := range commands {
		command, want, _ := strings.Cut(command, "\n")
		want = strings.ReplaceAll("\n"+want, "\n    ", "\n")[1:] + "\n"
		var fields []string
		if strings.Contains(command, "Bearer $KEY") {
			fields = append(fields, "Authorization", "Bearer "+g.key)
		}
		if strings.Contains(command, "X-Request-Id: r-17") {
			fields = append(fields, "X-Request-Id", "r-17")
		}
		_, path, _ := strings.Cut(command, "http://127.0.0.1:8081")
		status, header, got := g.get(t, path, fields...)
		if strings.Contains(command, "curl -i ") {
			got = status + "\n" + strings.Join(header, "\n") + "\n\n" + got
		}
		if got != want {
			t.Errorf("%s prints\n%s\nthe README shows\n%s", command, got, want)
		}
	}
	if len(commands) != 4 {
		t.Errorf("%d commands were found in the README, want 4", len(commands))
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
