//go:build unix

package httpserver

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A handshake does not wait for a pipe that has replaced a file of the certificate.
func TestACertificateThatIsNoFileAnyMore(t *testing.T) {
	for name, spoil := range map[string]func(file string) error{
		"pipe":       func(file string) error { return syscall.Mkfifo(file, 0o600) },
		"folder":     func(file string) error { return os.Mkdir(file, 0o700) },
		"huge file":  func(file string) error { return os.WriteFile(file, make([]byte, maxPEM+1), 0o600) },
		"empty file": func(file string) error { return os.WriteFile(file, nil, 0o600) },
		"loop":       func(file string) error { return os.Symlink(file, file) },
	} {
		for _, which := range []string{"cert.pem", "key.pem"} {
			t.Run(name+" for "+which, func(t *testing.T) {
				dir := t.TempDir()
				cert, key := Issue(t, "first")
				Put(t, filepath.Join(dir, "cert.pem"), cert)
				Put(t, filepath.Join(dir, "key.pem"), key)
				var log bytes.Buffer
				c, err := loadCertificate(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), slog.New(slog.NewTextHandler(&log, nil)))
				must(t, err)
				file := filepath.Join(dir, which)
				must(t, os.Remove(file))
				must(t, spoil(file))
				now := time.Now().Add(certificateAge)
				c.now = func() time.Time { return now }
				shown := make(chan string)
				go func() {
					pair, _ := c.get(nil)
					shown <- pair.Leaf.Subject.CommonName
				}()
				select {
				case got := <-shown:
					if got != "first" {
						t.Errorf("clients are shown the certificate %q, want the first", got)
					}
				case <-time.After(time.Minute):
					t.Fatal("the handshake waits")
				}
				if got := log.String(); !strings.Contains(got, "cannot load the new certificate") || len(got) > 1000 {
					t.Errorf("the log is %.2000q, want why the certificate cannot be loaded", got)
				}
			})
		}
	}
}
