package server

import (
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestARefusedCertificateOfRedisIsNamed(t *testing.T) {
	redis := httptest.NewUnstartedServer(http.NotFoundHandler())
	redis.Config.ErrorLog = log.New(io.Discard, "", 0)
	redis.StartTLS()
	defer redis.Close()
	c := testSettings(t)
	c.Redis = []string{"rediss://" + redis.Listener.Addr().String()}
	s, err := open(t.Context(), c, Options{Logger: slog.New(slog.DiscardHandler), redisBudget: time.Minute}, new(startup))
	if err != nil {
		t.Fatalf("open = %v, want that the server starts without Redis", err)
	}
	defer s.close()
	err = s.shared.err(t.Context())
	for _, want := range []string{"the certificate of Redis is refused: x509: ", "SSL_CERT_FILE"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("readiness says %v, want %q in it", err, want)
		}
	}
}
