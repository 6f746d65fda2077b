package main_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// A readerOfLogs starts a server and reads of its log only what it wants.
type readerOfLogs struct {
	*process
	pipe *os.File
	log  *bufio.Reader
}

func serveReadingLogs(t *testing.T, dir string) readerOfLogs {
	t.Helper()
	near, far, err := os.Pipe()
	must(t, err)
	t.Cleanup(func() { near.Close() })
	cmd := exec.Command("petstore", serveArgs(nil)...)
	cmd.Dir, cmd.Env, cmd.Stdout = dir, environment(), far
	must(t, cmd.Start())
	far.Close()
	r := readerOfLogs{&process{cmd: cmd, dir: dir, ended: make(chan struct{})}, near, bufio.NewReader(near)}
	go func() {
		r.err = cmd.Wait()
		close(r.ended)
	}()
	t.Cleanup(r.kill)
	serving := r.until(t, "serving")
	r.api, _ = serving["api"].(string)
	r.admin, _ = serving["admin"].(string)
	return r
}

// until reads the log up to a message.
func (r readerOfLogs) until(t *testing.T, message string) (line map[string]any) {
	t.Helper()
	must(t, r.pipe.SetReadDeadline(time.Now().Add(patience)))
	for line["msg"] != message {
		text, err := r.log.ReadBytes('\n')
		if err != nil {
			t.Fatalf("the log ends with %v before %q", err, message)
		}
		if err := json.Unmarshal(text, &line); err != nil {
			t.Fatalf("a line of the log is not JSON: %q", text)
		}
	}
	return line
}

// A reader of the log must not be able to stop the server by going away.
func TestClosedLogPipe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := roomyKey(t, dir, "ada")
	p := serveReadingLogs(t, dir)
	p.pipe.Close()
	for range 10 {
		mustAsk(t, 201, "POST", p.api+"/v1/pets", key, pet)
	}
	if err := p.stop(); err != nil {
		t.Errorf("the server did not end well: %v", err)
	}
}

// A pipe that is full because its reader does not read, as that of a terminal after Ctrl-S,
// must not hold up requests. Their lines wait.
func TestBlockedLogPipe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := roomyKey(t, dir, "ada")
	p := serveReadingLogs(t, dir)
	last := ""
	for range 1000 { // whose lines are more than a pipe holds
		last = mustAsk(t, 200, "GET", p.api+"/v1/pets", key, "").header.Get("X-Request-Id")
	}
	for line := p.until(t, "request"); line["request_id"] != last; {
		line = p.until(t, "request")
	}
	go io.Copy(io.Discard, p.log)
	if err := p.stop(); err != nil {
		t.Errorf("the server did not end well: %v", err)
	}
}
