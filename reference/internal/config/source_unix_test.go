//go:build unix

package config

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe, as in --config <(…), is read once: reading it again would block.
func TestSourceThatIsAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		if err := os.WriteFile(pipe, []byte("max_connections: 7"), 0); err != nil {
			t.Error(err)
		}
	}()
	s := NewSource(Flags{Config: &pipe}, environ(nil))
	for range 2 {
		if c, err := s.Load(); err != nil || c.MaxConnections != 7 {
			t.Fatalf("Load = %v, %v; want what was written once", c, err)
		}
		neverChanged(t, s)
	}
}

// A file that a pipe replaces is not opened.
func TestSourceThatBecomesAPipe(t *testing.T) {
	file := tempFile(t, "max_connections: 7")
	s := NewSource(Flags{Config: &file}, environ(nil))
	if _, err := s.Load(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	neverChanged(t, s)
	if _, err := s.Load(); err == nil || !strings.HasSuffix(err.Error(), file+" again: it is not a regular file") {
		t.Errorf("Load = %v, want an error about the pipe", err)
	}
}
