package monitoring

import (
	"bufio"
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

// metrics returns what Prometheus reads.
func (s *server) metrics(t *testing.T) string {
	t.Helper()
	resp, err := http.Get(s.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
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
		c.add(t, exercise(t).metrics(t))
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

	s.reload(t, strict+"draft_headers: true", "applied")
	s.reload(t, "draft_headers: perhaps", "refused")
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

// want sends a request to the API n times, with a header field if there is one. The last
// one must be answered with a status.
func (s *server) want(t *testing.T, status, n int, method, path, key, body string, field ...string) {
	t.Helper()
	got := 0
	for range n {
		r, err := http.NewRequestWithContext(t.Context(), method, s.api+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		if len(field) == 2 {
			r.Header.Set(field[0], field[1])
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		got = resp.StatusCode
	}
	if got != status {
		t.Fatalf("%s %s was answered with %d, want %d", method, path, got, status)
	}
}

// reload replaces the settings file, and waits until the server has read it for the first
// time with a result: applied or refused.
func (s *server) reload(t *testing.T, settings, result string) {
	t.Helper()
	s.write(t, "petstore.yaml", []byte(settings))
	if err := s.process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	series := `petstore_config_reloads_total{gatehouse_result="` + result + `"} 1`
	for end := time.Now().Add(patience); !strings.Contains(s.metrics(t), series); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the server has not %s its settings within %v", result, patience)
		}
	}
}
