//go:build unix

package config

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe, as in --config <(…), is read once: reading it again would block.
func TestSourceThatIsAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
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

// A file that a pipe or a folder replaces is not read, and that is reported once.
func TestSourceThatIsNoFileAnyMore(t *testing.T) {
	for name, create := range map[string]func(string) error{
		"pipe":   func(file string) error { return syscall.Mkfifo(file, 0o600) },
		"folder": func(file string) error { return os.Mkdir(file, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			file := tempFile(t, "max_connections: 7")
			s := NewSource(Flags{Config: &file}, environ(nil))
			_, err := s.Load()
			must(t, err)
			must(t, os.Remove(file))
			must(t, create(file))
			changedOnce(t, s)
			for range 2 {
				if _, err := s.Load(); err == nil || err.Error() != "cannot read settings file "+file+": it is not a regular file" {
					t.Errorf("Load = %v, want an error about the kind of file", err)
				}
				neverChanged(t, s)
			}
			must(t, os.Remove(file))
			must(t, os.WriteFile(file, []byte("max_connections: 8"), 0o600))
			changedOnce(t, s)
			if c, err := s.Load(); err != nil || c.MaxConnections != 8 {
				t.Errorf("Load = %v, %v; want the new settings", c, err)
			}
		})
	}
}

// changedOnce looks twice, because a change must last.
func changedOnce(t *testing.T, s *Source) {
	t.Helper()
	for _, want := range []bool{false, true} {
		if got := s.Changed(); got != want {
			t.Errorf("Changed = %t, want %t", got, want)
		}
	}
}
