package main_test

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// A smallDisk is a folder in which little can be written.
type smallDisk struct {
	dir  string
	cmd  *exec.Cmd        // petstore serve, so that it is bound by it
	grow func(*testing.T) // makes room; nil if that cannot be
}

// newSmallDisk mounts a small file system, or where that is not allowed, has the
// server write no file longer than a small one.
func newSmallDisk(t *testing.T) smallDisk {
	t.Helper()
	dir := t.TempDir()
	err := syscall.Mount("none", dir, "tmpfs", 0, "size=512k")
	if err == nil {
		t.Cleanup(func() {
			if err := syscall.Unmount(dir, 0); err != nil {
				t.Errorf("unmount %s: %v", dir, err)
			}
		})
		return smallDisk{dir, exec.Command("petstore", serveArgs(nil)...), func(t *testing.T) {
			must(t, syscall.Mount("none", dir, "tmpfs", syscall.MS_REMOUNT, "size=16m"))
		}}
	}
	if !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.EACCES) {
		t.Fatal(err)
	}
	return smallDisk{dir, exec.Command("/bin/sh", append([]string{"-c", `ulimit -f 300 && exec petstore "$@"`, "petstore"}, serveArgs(nil)...)...), nil}
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := newSmallDisk(t)
	key := roomyKey(t, disk.dir, "ada")
	disk.cmd.Dir, disk.cmd.Env = disk.dir, environment()
	p, err := launchCommand(disk.cmd, t.TempDir()) // the log needs room
	must(t, err)
	t.Cleanup(p.kill)

	// Pets are acknowledged until there is no more room, and then refused.
	acknowledged := map[int64]bool{}
	large := fmt.Sprintf(`{"name":%q,"categoryId":1}`, strings.Repeat("x", 255))
	var refused answer
	for refused.status == 0 {
		a, err := ask(t.Context(), "POST", p.api+"/v1/pets", key, large)
		must(t, err)
		if a.status != 201 {
			refused = a
			break
		}
		var stored struct{ ID int64 }
		a.into(t, &stored)
		acknowledged[stored.ID] = true
	}
	if refused.status != 503 || refused.header.Get("Retry-After") == "" || refused.header.Get("X-RateLimit-Limit") == "" ||
		!strings.Contains(string(refused.body), `"code":"unavailable"`) {
		t.Errorf("a pet for which there is no room is answered with %d %v %s, want 503 in the envelope, with Retry-After",
			refused.status, refused.header, refused.body)
	}
	if len(acknowledged) == 0 {
		t.Fatal("no pet was acknowledged")
	}

	// It goes on serving what is there.
	if got := petIDs(t, p, key); len(got) != len(acknowledged) {
		t.Errorf("%d pets are listed on the full disk, want the %d that were acknowledged", len(got), len(acknowledged))
	}
	mustAsk(t, 200, "GET", p.admin+"/readyz", "", "")
	mustAsk(t, 200, "GET", p.admin+"/healthz", "", "")

	if disk.grow != nil {
		disk.grow(t)
		eventually(t, "a pet is stored", func() bool {
			a, err := ask(t.Context(), "POST", p.api+"/v1/pets", key, pet)
			return err == nil && a.status == 201
		})
		eventually(t, "usage is saved", func() bool {
			a, err := ask(t.Context(), "GET", p.admin+"/readyz", "", "")
			return err == nil && strings.Contains(string(a.body), `"usage":"ok"`)
		})
	}
	if n := len(p.logged("cannot save; the server keeps trying")); n > 1 {
		t.Errorf("the log says %d times that it cannot save, want once at most", n)
	}
	before, usedBefore := petIDs(t, p, key), used(t, p, key)
	err = p.stop()
	if disk.grow == nil {
		// Without room the last save may fail, and that must not pass in silence.
		t.Logf("on the full disk it ended with %v", err)
		return
	}
	if err != nil {
		t.Errorf("it did not end well: %v", err)
	}
	p, err = launch(disk.dir, environment())
	must(t, err)
	defer p.kill()
	if after := petIDs(t, p, key); len(after) != len(before) {
		t.Errorf("%d pets are there after the restart, want %d", len(after), len(before))
	}
	if n := used(t, p, key); n <= usedBefore {
		t.Errorf("%d requests are counted after the restart, want more than %d", n, usedBefore)
	}
	if err := p.stop(); err != nil { // before the file system goes
		t.Error(err)
	}
}
