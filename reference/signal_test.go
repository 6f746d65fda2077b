package main_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const pet = `{"name":"Rex","categoryId":1}`

// serveForLong is serve with timeouts that no busy machine reaches, so that what ends a
// request is what the test does.
func serveForLong(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	writeFile(t, dir, "petstore.yaml", "timeouts: {read: 1h, write: 1h, drain: 1h}\n")
	return serve(t, dir, append(args, "--config=petstore.yaml")...)
}

// halfRequest begins to send a pet, and returns the connection on which the rest of
// it is awaited.
func halfRequest(t *testing.T, p *process, key string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.api, "http://"))
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	must(t, conn.SetDeadline(time.Now().Add(patience)))
	// The server asks for the body when the handler wants it, so that the request
	// is surely under way.
	fmt.Fprintf(conn, "POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", key, len(pet))
	line, err := bufio.NewReader(io.LimitReader(conn, int64(len("HTTP/1.1 100 Continue\r\n\r\n")))).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "HTTP/1.1 100") {
		t.Fatalf("the answer to Expect is %q, %v, want 100", line, err)
	}
	return conn
}

func TestSIGTERMFinishesWhatWasBegun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := roomyKey(t, dir, "ada")
	p := serveForLong(t, dir)
	conn := halfRequest(t, p, key)
	must(t, p.cmd.Process.Signal(syscall.SIGTERM))

	// It says that it is not ready, takes no more connections, and waits.
	eventually(t, "not ready", func() bool {
		a, err := ask(t.Context(), "GET", p.admin+"/readyz", "", "")
		return err == nil && a.status == 503 && strings.Contains(string(a.body), `"server":"starting or draining"`)
	})
	mustAsk(t, 200, "GET", p.admin+"/healthz", "", "")
	eventually(t, "no new connections", func() bool {
		c, err := net.Dial("tcp", strings.TrimPrefix(p.api, "http://"))
		if err == nil {
			c.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})

	io.WriteString(conn, pet)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != 201 {
		t.Fatalf("the request that was under way got %v, %v, want 201", resp, err)
	}
	if err := p.wait(); err != nil {
		t.Fatalf("the server did not end well: %v", err)
	}
	// The process is gone, so that nothing is added to its log.
	if len(p.logged("stopped")) != 1 || p.log[len(p.log)-1]["msg"] != "stopped" {
		t.Error("the log does not say at its end that it stopped")
	}

	p = serve(t, dir)
	if n := used(t, p, key); n != 1 {
		t.Errorf("%d requests are counted after the restart, want the one", n)
	}
	if ids := petIDs(t, p, key); !ids[1] {
		t.Errorf("the pets are %v, want the one", ids)
	}
}

func TestASecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := roomyKey(t, dir, "ada")
	p := serveForLong(t, dir)
	halfRequest(t, p, key)
	must(t, p.cmd.Process.Signal(syscall.SIGINT))
	eventually(t, "ending", func() bool { return len(p.logged("stopping; running requests are finished first")) == 1 })
	// A server that waited for the request would end by itself.
	err := p.stop()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("the server ended with %v, want the signal", err)
	}
}

// awaitSave waits until a usage file is saved again.
func awaitSave(t *testing.T, file string) {
	t.Helper()
	saved := func() (at time.Time) {
		if info, err := os.Stat(file); err == nil {
			at = info.ModTime()
		}
		return at
	}
	before := saved()
	eventually(t, "usage is saved", func() bool { return !saved().Equal(before) })
}

// A server that is killed under load has each pet that it acknowledged, the bans, and the
// usage up to its last save. Each request that it did not answer is sent again after its
// restart: there is one pet for each, whether or not the first server had stored it.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir, "petstore.yaml", `
plans:
  enterprise: custom
  small: [1/8784h]
penalty: {strikes: 1, grace: 0s, ban: 1h, growth: 2, max: 24h, forgive: 24h}
`)
	key, reader := roomyKey(t, dir, "ada"), roomyKey(t, dir, "reader")
	banned := petstore(t, dir, "keys", "create", "--config=petstore.yaml", "--name=test", "--owner=eve", "--plan=small")

	p := serve(t, dir, "--config=petstore.yaml")
	for _, want := range []int{200, 429, 429} {
		mustAsk(t, want, "GET", p.api+"/v1/pets", banned, "")
	}
	load := startTraffic(t, key, 8, p)
	load.flows(t, 100)
	least := load.answered()
	for range 2 { // the first save may have begun before
		awaitSave(t, filepath.Join(dir, "petstore.db-usage"))
	}
	p.kill()
	load.stop()

	p = serve(t, dir, "--config=petstore.yaml")
	if a := mustAsk(t, 429, "GET", p.api+"/v1/pets", banned, ""); a.code() != "api_key_banned" {
		t.Errorf("the owner that was banned gets %s, want the ban", a.body)
	}
	// A request that was charged and not answered may have been saved.
	if n := used(t, p, key); n < least || n > load.sent {
		t.Errorf("%d requests are counted, want %d, which were answered before the last save, to %d, which were sent",
			n, least, load.sent)
	}
	for _, failed := range load.failed {
		if failed.method == "POST" {
			load.acknowledged(t, failed.call, failed.mustSend(t, 201, p.api))
			load.acknowledged(t, failed.call, failed.mustSend(t, 201, p.api))
		}
	}
	if stored := load.checkStored(t, p, reader); stored != len(load.pets) {
		t.Errorf("there are %d pets, want %d: one for each request", stored, len(load.pets))
	}
	t.Logf("%d requests, %d pets, %d requests not answered", load.sent, len(load.pets), len(load.failed))
}
