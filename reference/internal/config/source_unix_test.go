//go:build unix

package config

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A file that a pipe or a folder replaces is not read, and that is reported once.
func TestSourceThatIsNoFileAnyMore(t *testing.T) {
	for name, create := range map[string]func(string) error{
		"pipe":   func(file string) error { return syscall.Mkfifo(file, 0o600) },
		"folder": func(file string) error { return os.Mkdir(file, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			file := tempFile(t, "max_connections: 7")
			s := NewSource(Flags{"config": &file}, nil)
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
			if c, err := s.Load(); err != nil || c.HTTP.MaxConns != 8 {
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

// Other users of the machine should not read a secret.
func TestWarningAboutSecretsThatOthersCanRead(t *testing.T) {
	for _, tt := range []struct {
		content string
		mode    os.FileMode
		secrets string
	}{
		{"admin_token: 0123456789abcdef", 0o644, "admin_token"},
		{"admin_token: 0123456789abcdef", 0o640, ""},
		{"database: postgres://u:p@h/d\nredis: redis://:p@h", 0o604, "redis"},
		{"database: postgres://u@h/d\nredis: redis://h", 0o644, ""},
		{"listen: 127.0.0.1:1", 0o644, ""},
	} {
		file := filepath.Join(t.TempDir(), "petstore.yaml")
		must(t, os.WriteFile(file, []byte(tt.content), tt.mode))
		must(t, os.Chmod(file, tt.mode)) // whatever the umask is
		c, err := NewSource(Flags{"config": &file}, nil).Load()
		must(t, err)
		want := ""
		if tt.secrets != "" {
			want = "other users of the machine can read " + file + ", which has a secret in " + tt.secrets + "; remove their right with chmod o-r"
		}
		if c.warning != want {
			t.Errorf("%s with mode %o: Warning = %q, want %q", tt.content, tt.mode, c.warning, want)
		}
	}
	file := filepath.Join(t.TempDir(), "petstore.yaml")
	must(t, os.WriteFile(file, nil, 0o644))
	c, err := NewSource(Flags{"config": &file}, environ(map[string]string{"PETSTORE_ADMIN_TOKEN": "0123456789abcdef"})).Load()
	if err != nil || c.warning != "" {
		t.Errorf("with the secret elsewhere: %v, %q, want no warning", err, c.warning)
	}
}
