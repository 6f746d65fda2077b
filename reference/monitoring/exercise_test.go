package monitoring

import (
	"bufio"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
)

// strict bans at the second strike. A window of the plan small does not end in a test.
const strict = `
plans: {free: [60/minute, 1000/day], small: [2/8784h]}
penalty: {strikes: 1, grace: 0s, ban: 1h, growth: 1, max: 1h, forgive: 1h}
`

// expose runs servers, has them do and suffer what they have metrics for, and returns
// what they expose.
func expose(t *testing.T) catalogue {
	t.Helper()
	c := catalogue{}
	for _, exercise := range []func(*testing.T) *server{alone, withRedis, withPostgres, withTLS} {
		s := exercise(t)
		if err := c.add(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// alone exercises a server without Redis.
func alone(t *testing.T) *server {
	t.Helper()
	s := start(t, strict, nil)
	small := s.petstore(t, "keys", "create", "--config=petstore.yaml", "--name=test", "--owner=ann", "--plan=small")
	s.want(t, http.StatusTooManyRequests, 8, "GET", "/v1/pets", small, "")
	s.petstore(t, "bans", "unban", "ann")
	s.want(t, http.StatusUnauthorized, 1, "GET", "/v1/pets", "", "")
	s.want(t, http.StatusUnauthorized, 1, "GET", "/v1/pets", "pet_live_wrong", "")
	s.want(t, http.StatusCreated, 1, "POST", "/v1/pets", s.key, `{"name":"Rex","categoryId":1}`)
	s.want(t, http.StatusOK, 1, "GET", "/v1/pets/1", s.key, "") // deprecated
	s.want(t, http.StatusNotModified, 1, "GET", "/v1/pets", s.key, "", "If-None-Match", "*")

	s.reload(t, strict+"draft_headers: true")
	s.reload(t, "draft_headers: perhaps")
	// A write fails.
	if err := os.Remove(filepath.Join(s.dir, "petstore.db")); err != nil {
		t.Fatal(err)
	}
	s.want(t, http.StatusServiceUnavailable, 1, "POST", "/v1/pets", s.key, `{"name":"Rex","categoryId":1}`)
	return s
}

// withRedis exercises a server whose Redis ends.
func withRedis(t *testing.T) *server {
	t.Helper()
	redis := miniredis.RunT(t)
	s := start(t, "on_redis_failure: closed\nredis: redis://"+redis.Addr(), nil)
	s.want(t, http.StatusOK, 1, "GET", "/v1/pets", s.key, "")
	redis.Close()
	s.want(t, http.StatusServiceUnavailable, 20, "GET", "/v1/pets", s.key, "")
	return s
}

// withPostgres starts a server on PostgreSQL.
func withPostgres(t *testing.T) *server {
	t.Helper()
	s := start(t, "usage_file: usage.db\ndatabase: "+postgrestest.Database(t), nil)
	s.want(t, http.StatusOK, 1, "GET", "/v1/pets", s.key, "")
	return s
}

// withTLS starts a server with a certificate.
func withTLS(t *testing.T) *server {
	t.Helper()
	other := httptest.NewTLSServer(nil)
	defer other.Close()
	pair := other.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return start(t, "tls_cert: cert.pem\ntls_key: key.pem", map[string][]byte{
		"cert.pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}),
		"key.pem":  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	})
}

// want sends a request to the API n times, the last of which must be answered with a
// status.
func (s *server) want(t *testing.T, status, n int, method, path, key, body string, field ...string) {
	t.Helper()
	got := 0
	for range n {
		got = s.ask(t, method, path, key, body, field...)
	}
	if got != status {
		t.Fatalf("%s %s was answered with %d, want %d", method, path, got, status)
	}
}

// reload replaces the settings file, and waits until the server has read it.
func (s *server) reload(t *testing.T, settings string) {
	t.Helper()
	before := s.reloads(t)
	s.write(t, "petstore.yaml", []byte(settings))
	if err := s.process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); s.reloads(t) == before; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the server has not read its settings within %v", patience)
		}
	}
}

// reloads returns how often the server has read its settings again, with any result.
func (s *server) reloads(t *testing.T) (n float64) {
	t.Helper()
	body, err := s.scrape(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	for lines := bufio.NewScanner(body); lines.Scan(); {
		if !strings.HasPrefix(lines.Text(), "petstore_config_reloads_total{") {
			continue
		}
		fields := strings.Fields(lines.Text())
		value, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		if err != nil {
			t.Fatal(err)
		}
		n += value
	}
	return n
}
