//go:build unix

package httpserver

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A file of the certificate that cannot be read any more keeps neither handshakes waiting
// nor the log busy.
func TestACertificateThatIsNoFileAnyMore(t *testing.T) {
	for name, spoil := range map[string]func(file string) error{
		"folder":     func(file string) error { return os.Mkdir(file, 0o700) },
		"pipe":       func(file string) error { return syscall.Mkfifo(file, 0o600) },
		"huge file":  func(file string) error { return os.WriteFile(file, make([]byte, maxPEM+1), 0o600) },
		"empty file": func(file string) error { return os.WriteFile(file, nil, 0o600) },
		"loop":       func(file string) error { return os.Symlink(file, file) },
	} {
		for _, which := range []string{"cert.pem", "key.pem"} {
			c := follow(t)
			file := filepath.Join(filepath.Dir(c.certFile), which)
			must(t, os.Remove(file))
			must(t, spoil(file))
			if got := c.shown(t); got != "first" {
				t.Errorf("%s for %s: clients are shown the certificate %q, want the first", name, which, got)
			}
			if got := c.log.String(); !strings.Contains(got, "cannot load the new certificate") || len(got) > 1000 {
				t.Errorf("%s for %s: the log is %.2000q, want why the certificate cannot be loaded", name, which, got)
			}
		}
	}
}
