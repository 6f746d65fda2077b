package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/reference/internal/certtest"
)

var must = testcheck.NoError

// patience is for how long anything is waited for, before a test fails.
const patience = 2 * time.Minute

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
		return nil, fmt.Errorf("petstore ended instead of serving: %w\n%s", p.err, p.stderr())
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
		p.mu.Lock()
		p.log = append(p.log, line)
		p.mu.Unlock()
		if line["msg"] == "serving" {
			p.api, _ = line["api"].(string)
			p.admin, _ = line["admin"].(string)
			close(serving)
		}
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
func environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=/no-home", "TMPDIR=" + os.TempDir(), raceVar + "=" + raceOptions}
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
	must(t, err)
	t.Cleanup(p.kill)
	return p
}

// command runs petstore, and returns its exit code and all that it writes.
func command(t *testing.T, dir string, args ...string) (code int, said string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "petstore", args...)
	cmd.Dir, cmd.Env = dir, environment()
	out, err := cmd.CombinedOutput()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended || ctx.Err() != nil {
		t.Fatalf("petstore %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// petstore runs a command that must succeed, and returns its standard output without the
// end of the line.
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

// keyID returns the ID of the only key of an owner.
func keyID(t *testing.T, dir, flag, owner string) string {
	t.Helper()
	for line := range strings.Lines(petstore(t, dir, "keys", "list", flag)) {
		if fields := strings.Fields(line); strings.Contains(line, " "+owner+" ") {
			return fields[0]
		}
	}
	t.Fatalf("there is no key of %s", owner)
	return ""
}

// roomyKey makes a key whose quota no test uses up, in a window that does not end.
func roomyKey(t *testing.T, dir, owner string, flags ...string) string {
	t.Helper()
	return petstore(t, dir, append([]string{"keys", "create", "--name=test", "--owner=" + owner, "--plan=enterprise", "--quota=1000000000/8784h"}, flags...)...)
}

func writeFile(t *testing.T, dir, name, content string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
}

// writeCertificate writes a certificate that nobody has signed: cert.pem and key.pem.
func writeCertificate(t *testing.T, folder string) {
	t.Helper()
	certificate, key := certtest.New(t)
	writeFile(t, folder, "cert.pem", string(certificate))
	writeFile(t, folder, "key.pem", string(key))
}
