package monitoring

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

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
