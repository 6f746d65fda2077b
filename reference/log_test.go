package main_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testenv"
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
	eventually(t, "readiness tells of the log", func() bool {
		return strings.Contains(string(mustAsk(t, 200, "GET", p.admin+"/readyz", "", "").body), `"log":"the log cannot be written, `)
	})
	if err := p.stop(); err != nil {
		t.Errorf("the server did not end well: %v", err)
	}
}

// A pipe that is full because its reader does not read must not hold up requests.
func TestBlockedLogPipe(t *testing.T) {
	testenv.Long(t, "fills a pipe with a log")
	t.Parallel()
	dir := t.TempDir()
	key := roomyKey(t, dir, "ada")
	p := serveReadingLogs(t, dir)
	dropping := func() bool {
		return strings.Contains(string(mustAsk(t, 200, "GET", p.admin+"/readyz", "", "").body), `"log":"the log is not read fast enough, `)
	}
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for i := range 5000 { // more than fit in the pipe and the buffer
				if a, err := ask(t.Context(), "GET", p.api+"/v1/pets", key, ""); err != nil || a.status != 200 {
					t.Errorf("with a blocked log a request gets %d, %v", a.status, err)
					return
				}
				if i%32 == 0 && dropping() {
					return
				}
			}
		})
	}
	clients.Wait()
	if !dropping() {
		t.Error("readiness does not tell that lines of the log are dropped")
	}
	line := p.until(t, "log lines were dropped because the log could not be written")
	if n, _ := line["lines"].(float64); n < 1 {
		t.Errorf("the log says %v, want how many lines are missing", line)
	}
	eventually(t, "readiness is content", func() bool { return !dropping() })
	go io.Copy(io.Discard, p.log)
	if err := p.stop(); err != nil {
		t.Errorf("the server did not end well: %v", err)
	}
}
