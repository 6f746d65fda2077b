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
	if err := syscall.Mkfifo(settings, 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.Command("petstore", serveArgs([]string{"--config", settings})...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, environment(), &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	// This waits until the server has opened it, too.
	f, err := os.OpenFile(settings, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v, want 0\n%s", err, &log)
	}
}
