package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// A signal ends the server well from the beginning on: here it arrives while the
// settings are read.
func TestSIGTERMBeforeTheSettingsAreRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	settings := filepath.Join(dir, "petstore.yaml")
	must(t, syscall.Mkfifo(settings, 0o600))
	var log bytes.Buffer
	cmd := exec.Command("petstore", serveArgs([]string{"--config", settings})...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, environment(), &log, &log
	must(t, cmd.Start())
	defer cmd.Process.Kill()
	// This waits until the server has opened it, too.
	f, err := os.OpenFile(settings, os.O_WRONLY, 0)
	must(t, err)
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	f.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v, want 0\n%s", err, &log)
	}
}
