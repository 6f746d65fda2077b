package main_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"
)

// A reader of the log must not be able to stop the server: neither by not reading, as a terminal
// after Ctrl-S, for the lines wait then, nor by going away.
func TestLogPipe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := roomyKey(t, dir, "ada")
	near, far, err := os.Pipe()
	must(t, err)
	defer near.Close()
	must(t, near.SetReadDeadline(time.Now().Add(patience)))
	cmd := exec.Command("petstore", serveArgs(nil)...)
	cmd.Dir, cmd.Env, cmd.Stdout = dir, environment(), far
	must(t, cmd.Start())
	far.Close()
	p := &process{cmd: cmd, dir: dir, ended: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(p.kill)
	lines := bufio.NewScanner(near)
	until := func(name, value string) (line map[string]any) {
		t.Helper()
		for line[name] != value {
			if line = nil; !lines.Scan() {
				t.Fatalf("the log ends with %v before %s %q", lines.Err(), name, value)
			}
			must(t, json.Unmarshal(lines.Bytes(), &line))
		}
		return line
	}

	api, _ := until("msg", "serving")["api"].(string)
	last := ""
	for range 1000 { // whose lines are more than a pipe holds
		last = mustAsk(t, 200, "GET", api+"/v1/pets", key, "").header.Get("X-Request-Id")
	}
	until("request_id", last)
	near.Close()
	for range 10 {
		mustAsk(t, 201, "POST", api+"/v1/pets", key, pet)
	}
	if err := p.stop(); err != nil {
		t.Errorf("the server did not end well: %v", err)
	}
}
