package adminapi_test

import (
	"net"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/adminapi"
)

// A health check does not hang with the server.
func TestHealthOfAServerThatHangs(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // which accepts no connection
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client := adminapi.Client{Addr: l.Addr().String()}
	const want = "no response within 1.5s; the server may hang"
	if err := client.Health(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Health = %v, want %q", err, want)
	}
	if _, err := client.Readiness(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Readiness = %v, want %q", err, want)
	}
}
