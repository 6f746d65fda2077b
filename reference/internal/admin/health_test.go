package admin_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/admin"
)

// A health check does not hang with the server.
func TestHealthOfAServerThatHangs(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // which accepts no connection
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const want = "no response within 1.5s; the server may hang"
	if err := (admin.Client{Addr: l.Addr().String()}).Health(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Health = %v, want %q", err, want)
	}
}

// The checks of a server whose database does not answer take longer than a health check,
// and then say what is wrong.
func TestReadinessWaitsForTheChecks(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(2 * time.Second)
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"ready":false,"checks":{"database":"no answer"}}`)
	}))
	defer s.Close()
	r, err := admin.Client{Addr: s.Listener.Addr().String()}.Readiness(t.Context())
	if err != nil || r.Ready || r.Checks["database"] != "no answer" {
		t.Errorf("Readiness = %+v, %v, want what the checks say", r, err)
	}
}
