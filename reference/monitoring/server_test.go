package monitoring

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/animalstore/gatehouse/reference/internal/cli"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
)

// The test binary is petstore if it is started under that name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"petstore": func() { os.Exit(cli.Run(os.Args[1:])) },
	})
}

// patience is how long a test waits before it fails.
const patience = 2 * time.Minute

// A server is a petstore that serves, as a process of its own.
type server struct {
	dir        string // its current directory
	api, admin string // base URLs
	key        string // its first key
	process    *os.Process
}

// start starts a server with these settings and further files, by their names, on free
// ports. It ends with the test.
func start(t *testing.T, settings string, files map[string][]byte) *server {
	t.Helper()
	s := &server{dir: t.TempDir()}
	s.write(t, "petstore.yaml", []byte(settings))
	for name, data := range files {
		s.write(t, name, data)
	}
	cmd := exec.CommandContext(t.Context(), "petstore", "serve", "--config=petstore.yaml", "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0")
	cmd.Dir, cmd.Env = s.dir, environment()
	stderr := filepath.Join(s.dir, "stderr")
	file, err := os.Create(stderr)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd.Stderr = file
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.process = cmd.Process
	t.Cleanup(func() {
		cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(stdout)
	for s.api == "" && lines.Scan() {
		var line struct{ Msg, API, Admin string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
			s.api, s.admin = line.API, line.Admin
		}
	}
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	notice, err := os.ReadFile(stderr)
	if err != nil || s.api == "" {
		t.Fatalf("petstore does not serve: %v\n%s", err, notice)
	}
	s.key = regexp.MustCompile(`pet_live_\w+`).FindString(string(notice))
	return s
}

// environment is what the processes of a test see.
func environment(extra ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "GORACE=" + os.Getenv("GORACE")}, extra...)
}

// write writes a file that the server can read.
func (s *server) write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// petstore runs a command for the server, and returns what it prints.
func (s *server) petstore(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "petstore", args...)
	cmd.Dir, cmd.Env = s.dir, environment("PETSTORE_ADMIN_LISTEN="+strings.TrimPrefix(s.admin, "http://"))
	var messages strings.Builder
	cmd.Stderr = &messages
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("petstore %s: %v\n%s", strings.Join(args, " "), err, &messages)
	}
	return strings.TrimSpace(string(out))
}

// ask sends a request to the API, with a header field if there is one, and returns the
// status.
func (s *server) ask(t *testing.T, method, path, key, body string, field ...string) (status int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.api+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if len(field) == 2 {
		r.Header.Set(field[0], field[1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// scrape reads the metrics as Prometheus does.
func (s *server) scrape(ctx context.Context) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.admin+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

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
