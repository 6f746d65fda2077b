package main_test

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// On a full disk the server refuses what it cannot store, serves what it has, and goes on
// by itself once there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	err := syscall.Mount("none", dir, "tmpfs", 0, "size=512k")
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
		t.Skipf("skipped: this user cannot mount a small file system: %v", err)
	}
	must(t, err)
	t.Cleanup(func() { must(t, syscall.Unmount(dir, 0)) })
	key := roomyKey(t, dir, "ada")
	cmd := exec.Command("petstore", serveArgs(nil)...)
	cmd.Dir, cmd.Env = dir, environment()
	p, err := launchCommand(cmd, t.TempDir()) // the log needs room
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

	must(t, syscall.Mount("none", dir, "tmpfs", syscall.MS_REMOUNT, "size=16m"))
	eventually(t, "a pet is stored", func() bool {
		a, err := ask(t.Context(), "POST", p.api+"/v1/pets", key, pet)
		return err == nil && a.status == 201
	})
	eventually(t, "usage is saved", func() bool {
		a, err := ask(t.Context(), "GET", p.admin+"/readyz", "", "")
		return err == nil && strings.Contains(string(a.body), `"usage":"ok"`)
	})
	if n := len(p.logged("cannot save; the server keeps trying")); n > 1 {
		t.Errorf("the log says %d times that it cannot save, want once at most", n)
	}
	before, usedBefore := petIDs(t, p, key), used(t, p, key)
	if err := p.stop(); err != nil {
		t.Errorf("it did not end well: %v", err)
	}
	p, err = launch(dir, environment())
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
