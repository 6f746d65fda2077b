package main_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// While every connection of the API has a request running and more wait, the admin
// listener answers, and so does the API as soon as there is room.
func TestAdminListenerAnswersWhileTheAPIIsFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := roomyKey(t, dir, "ada")
	p := serveForLong(t, dir, "--max-connections=2", "--max-connections-per-network=1")
	busy := []net.Conn{halfRequest(t, p, key), halfRequest(t, p, key)}
	waiting, err := net.Dial("tcp", strings.TrimPrefix(p.api, "http://"))
	must(t, err)
	defer waiting.Close()
	fmt.Fprintf(waiting, "GET /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", key)
	eventually(t, "a connection waits", func() bool {
		return slices.ContainsFunc(p.logged("http server"), func(line map[string]any) bool {
			return line["message"] == "a new connection has to wait, because every open one has a running request"
		})
	})

	// More running requests than the API may have.
	for range 3 {
		c, err := net.Dial("tcp", strings.TrimPrefix(p.admin, "http://"))
		must(t, err)
		defer c.Close()
		fmt.Fprint(c, "GET /debug/pprof/goroutine?seconds=20 HTTP/1.1\r\nHost: localhost\r\n\r\n")
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/bans"} {
		c, err := net.Dial("tcp", strings.TrimPrefix(p.admin, "http://"))
		must(t, err)
		defer c.Close()
		c.SetDeadline(time.Now().Add(10 * time.Second)) // less than the profiles take
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("GET %s while the API is full: %v, %v; want 200", path, resp, err)
		}
	}
	io.WriteString(busy[0], pet)
	waiting.SetDeadline(time.Now().Add(patience))
	resp, err := http.ReadResponse(bufio.NewReader(waiting), nil)
	if err != nil || resp.StatusCode != 200 {
		t.Errorf("the request that waited got %v, %v; want 200", resp, err)
	}
}
