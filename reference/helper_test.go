package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// patience is for how long anything is waited for, before a test fails.
const patience = 30 * time.Second

// process is a petstore that serves, as a process of its own.
type process struct {
	cmd        *exec.Cmd
	api, admin string        // base URLs
	notice     string        // what it wrote to standard error until it served
	dir        string        // where its output is kept
	ended      chan struct{} // closed when it has ended
	err        error         // then what came of it

	mu  sync.Mutex
	log []map[string]any
}

// launch starts petstore serve with arguments in a folder, on free ports unless the
// arguments say otherwise, and waits until it serves.
func launch(dir string, env []string, args ...string) (*process, error) {
	cmd := exec.Command("petstore", serveArgs(args)...)
	cmd.Dir, cmd.Env = dir, env
	return launchCommand(cmd, dir)
}

func serveArgs(args []string) []string {
	return append([]string{"serve", "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0"}, args...)
}

// launchCommand is launch for a command that is ready. The log and standard error
// are kept in a folder.
func launchCommand(cmd *exec.Cmd, dir string) (*process, error) {
	p := &process{cmd: cmd, dir: dir, ended: make(chan struct{})}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	// A file and not a pipe, so that what was written before a line of the log is
	// there when that line is read.
	stderr, err := os.Create(filepath.Join(dir, "serve.err"))
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	copied, err := os.Create(filepath.Join(dir, "serve.log"))
	if err != nil {
		return nil, err
	}
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		copied.Close()
		return nil, err
	}
	serving := make(chan struct{})
	go func() {
		defer close(p.ended)
		err := p.read(io.TeeReader(stdout, copied), serving)
		copied.Close()
		p.err = errors.Join(cmd.Wait(), err)
	}()
	select {
	case <-serving:
	case <-p.ended:
		return nil, fmt.Errorf("petstore ended instead of serving: %v\n%s", p.err, p.stderr())
	case <-time.After(patience):
		p.kill()
		return nil, fmt.Errorf("petstore does not serve after %v\n%s", patience, p.stderr())
	}
	p.notice = p.stderr()
	return p, nil
}

// read reads the log, of which every line must be an object in JSON.
func (p *process) read(stdout io.Reader, serving chan<- struct{}) error {
	lines := bufio.NewScanner(stdout)
	var wrong error
	for lines.Scan() {
		var line map[string]any
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("a line of the log is not JSON: %q", lines.Text()))
			continue
		}
		if line["msg"] == "serving" {
			p.api, _ = line["api"].(string)
			p.admin, _ = line["admin"].(string)
			close(serving)
		}
		p.mu.Lock()
		p.log = append(p.log, line)
		p.mu.Unlock()
	}
	return errors.Join(wrong, lines.Err())
}

func (p *process) stderr() string {
	text, err := os.ReadFile(filepath.Join(p.dir, "serve.err"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// logged returns the lines of the log with a message.
func (p *process) logged(message string) (lines []map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.log {
		if line["msg"] == message {
			lines = append(lines, line)
		}
	}
	return lines
}

// stop ends the process the gentle way, and returns what is wrong with its end.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.wait()
}

func (p *process) wait() error {
	select {
	case <-p.ended:
		if p.err != nil {
			return fmt.Errorf("%w\n%s", p.err, p.stderr())
		}
		return nil
	case <-time.After(patience):
		p.kill()
		return fmt.Errorf("petstore has not ended after %v", patience)
	}
}

// kill ends the process the hard way, if it has not ended.
func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.ended
}

// environment is what the processes of a test see.
func environment(extra ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=/no-home", "TMPDIR=" + os.TempDir(), raceVar + "=" + raceOptions}, extra...)
}

// The race detector has a process wait for a second before it ends.
const (
	raceVar     = "GORACE"
	raceOptions = "atexit_sleep_ms=0"
)

// serve starts a server that ends with the test, if not before.
func serve(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	p, err := launch(dir, environment(), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

// petstore runs another command, and returns its standard output without the end of
// the line.
func petstore(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "petstore", args...)
	cmd.Dir, cmd.Env = dir, environment()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("petstore %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// roomyKey makes a key whose quota no test uses up, in a window that does not end.
func roomyKey(t *testing.T, dir, owner string) string {
	t.Helper()
	return petstore(t, dir, "keys", "create", "--name=test", "--owner="+owner, "--plan=enterprise", "--quota=1000000000/8784h")
}

// answer is a response with its body.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// ask sends a request with a key, if that is not empty.
func ask(ctx context.Context, method, url, key, body string) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, data}, err
}

// mustAsk is ask for a response of a status.
func mustAsk(t *testing.T, status int, method, url, key, body string) answer {
	t.Helper()
	a, err := ask(t.Context(), method, url, key, body)
	if err != nil {
		t.Fatal(err)
	}
	if a.status != status {
		t.Fatalf("%s %s: answered with %d, want %d\n%s", method, url, a.status, status, a.body)
	}
	return a
}

// into reads the body of an answer as JSON.
func (a answer) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
}

// used returns how much of the one quota of a key is used.
func used(t *testing.T, p *process, key string) int64 {
	t.Helper()
	var usage struct {
		Quotas []struct{ Limit, Remaining int64 }
	}
	mustAsk(t, 200, "GET", p.api+"/v1/usage", key, "").into(t, &usage)
	if len(usage.Quotas) != 1 {
		t.Fatalf("usage has %d quotas, want 1", len(usage.Quotas))
	}
	return usage.Quotas[0].Limit - usage.Quotas[0].Remaining
}

// petIDs returns the IDs of all pets, page by page.
func petIDs(t *testing.T, p *process, key string) map[int64]bool {
	t.Helper()
	ids := map[int64]bool{}
	for next := "/v1/pets?limit=100"; next != ""; {
		a := mustAsk(t, 200, "GET", p.api+next, key, "")
		var pets []struct{ ID int64 }
		a.into(t, &pets)
		for _, pet := range pets {
			ids[pet.ID] = true
		}
		next = ""
		if link := a.header.Get("Link"); strings.Contains(link, `rel="next"`) {
			next, _, _ = strings.Cut(strings.TrimPrefix(link, "<"), ">")
		}
	}
	return ids
}

// eventually tries again until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("after %v still not: %s", patience, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func writeFile(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// listDeprecatedUse reads the database of a server that has ended.
func listDeprecatedUse(t *testing.T, dir string) []store.DeprecatedUse {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(dir, "petstore.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	uses, err := db.ListDeprecatedUse(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return uses
}
