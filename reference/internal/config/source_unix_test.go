//go:build unix

package config

import (
	"os"
	"path/filepath"
	"testing"
)

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
