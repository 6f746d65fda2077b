package main_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// notifications is the socket on which systemd listens to a service.
type notifications struct{ *net.UnixConn }

func listenAsSystemd(t *testing.T) (notifications, string) {
	t.Helper()
	name := fmt.Sprint("@petstore-test-", os.Getpid()) // not a path, which may have at most 107 bytes
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	return notifications{conn}, "NOTIFY_SOCKET=" + name
}

// next returns the next notification that does not belong to the watchdog.
func (n notifications) next(t *testing.T) string {
	t.Helper()
	for {
		if got := n.any(t); got != "WATCHDOG=1" {
			return got
		}
	}
}

func (n notifications) any(t *testing.T) string {
	t.Helper()
	must(t, n.SetReadDeadline(time.Now().Add(patience)))
	buf := make([]byte, 8<<10)
	size, err := n.Read(buf)
	must(t, err)
	return string(buf[:size])
}

func TestSystemdIsNotified(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	systemd, socket := listenAsSystemd(t)
	writeFile(t, dir, "petstore.yaml", "")
	p, err := launch(dir, environment(socket, "WATCHDOG_USEC=100000"), "--config=petstore.yaml")
	must(t, err)
	t.Cleanup(p.kill)
	if got := systemd.next(t); got != "READY=1\nSTATUS=serving" {
		t.Fatalf("once it serves, it sends %q", got)
	}
	if got := systemd.any(t); got != "WATCHDOG=1" {
		t.Errorf("while it serves, it sends %q, want a sign of life", got)
	}

	signal := func(s syscall.Signal) {
		t.Helper()
		must(t, p.cmd.Process.Signal(s))
	}
	reloading := regexp.MustCompile(`^RELOADING=1\nMONOTONIC_USEC=[1-9][0-9]*\n$`)
	for _, step := range []struct{ file, want string }{
		{"draft_headers: true\n", "READY=1\nSTATUS=serving"},
		{"draft_headers: maybe\nlisten: x\n", "READY=1\nSTATUS=serving; refused the new settings: petstore.yaml:1:16: draft_headers: "},
		{"# none\n", "READY=1\nSTATUS=serving"},
	} {
		writeFile(t, dir, "petstore.yaml", step.file)
		signal(syscall.SIGHUP)
		if got := systemd.next(t); !reloading.MatchString(got) {
			t.Errorf("on SIGHUP it sends %q, want RELOADING and the time", got)
		}
		if got := systemd.next(t); !strings.HasPrefix(got, step.want) || strings.Count(got, "\n") != 1 {
			t.Errorf("after a reload of %q it sends %q, want %q in two lines", step.file, got, step.want)
		}
	}
	signal(syscall.SIGTERM)
	if got := systemd.next(t); got != "STOPPING=1\nSTATUS=stopping" {
		t.Errorf("on SIGTERM it sends %q, want that it stops", got)
	}
	if err := p.wait(); err != nil {
		t.Error(err)
	}
}

// A wrong NOTIFY_SOCKET does not stop the server.
func TestSystemdThatDoesNotListen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, err := launch(dir, environment("NOTIFY_SOCKET="+filepath.Join(dir, "none"), "WATCHDOG_USEC=soon"))
	must(t, err)
	t.Cleanup(p.kill)
	eventually(t, "warnings", func() bool {
		return len(p.logged("cannot notify systemd; check NOTIFY_SOCKET")) == 1 &&
			len(p.logged("cannot use the watchdog of systemd; check WATCHDOG_USEC")) == 1
	})
	if err := p.stop(); err != nil {
		t.Error(err)
	}
}
