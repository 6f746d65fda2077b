package server

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/certtest"
	"github.com/animalstore/gatehouse/reference/internal/config"
)

// testReloader returns a reloader with a file, and what it applies and logs.
func testReloader(t *testing.T, file string, apply func(*config.Config) error) (r *reloader, log *bytes.Buffer) {
	t.Helper()
	log = new(bytes.Buffer)
	source := config.NewSource(config.Flags{"config": &file}, nil)
	c, err := source.Load()
	must(t, err)
	return &reloader{source: source, logger: slog.New(slog.NewTextHandler(log, nil)), current: c, wanted: c, apply: apply, setLevel: func(slog.Level) {}}, log
}

func put(t testing.TB, file, content string) {
	t.Helper()
	must(t, os.WriteFile(file, []byte(content), 0o600))
}

func TestReloadStatus(t *testing.T) {
	file := filepath.Join(t.TempDir(), "petstore.yaml")
	put(t, file, "max_connections: 1")
	var applied []int
	var failure error
	r, log := testReloader(t, file, func(c *config.Config) error {
		if failure == nil {
			applied = append(applied, c.HTTP.MaxConns)
		}
		return failure
	})
	if s := r.Status(); s.Applied+s.Refused != 0 {
		t.Errorf("before the first reload the status is %+v", s)
	}
	put(t, file, "max_connections: 2\ndatabase: other.db\nredis: redis://h")
	r.reload("test")
	if s := r.Status(); s.Applied != 1 || s.Error != "" || !slices.Equal(s.Restart, []string{"database", "redis"}) {
		t.Errorf("after a reload the status is %+v, want that it was applied, and that database and redis need a restart", s)
	}
	failure = errors.New("wrong handler")
	put(t, file, "max_connections: 3")
	r.reload("test")
	if s := r.Status(); s.Applied != 1 || s.Refused != 1 || s.Error != failure.Error() || len(s.Restart) != 2 {
		t.Errorf("after a failure the status is %+v, want that it was refused and the rest as before", s)
	}
	failure = nil
	r.reload("test")
	if s := r.Status(); s.Applied != 2 || s.Error != "" || len(s.Restart) != 0 || !slices.Equal(applied, []int{2, 3}) {
		t.Errorf("after the next reload the status is %+v and %v were applied, want 2 and 3", s, applied)
	}
	if want := `changed=[max_connections]`; !strings.HasSuffix(strings.TrimSpace(log.String()), want+" need_restart=[]") {
		t.Errorf("the log is\n%s\nwant %q at its end: 3 was not in force before", log, want)
	}
}

// A new certificate in the files of the old one is loaded within two seconds. Settings that were
// refused because of their certificate are applied as soon as it can be loaded. Until then there
// is one line in the log. A reload is also refused when the files of the certificate in force
// cannot be loaded any more, or have become something that cannot be read.
func TestReloaderFollowsTheCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		file, cert := filepath.Join(dir, "petstore.yaml"), filepath.Join(dir, "cert.pem")
		first := filepath.Join(dir, "first.pem")
		put(t, first, selfSigned(t))
		withTLS := func(conns int, cert string) string {
			return fmt.Sprintf("max_connections: %d\ntls_cert: %s\ntls_key: %[2]s", conns, cert)
		}
		put(t, file, withTLS(1, first))
		r, log := testReloader(t, file, func(*config.Config) error { return nil })
		var err error
		r.certificate, err = readCertificate(r.current)
		must(t, err)
		stop := r.start(t.Context())
		after := func(applied, refused int64) {
			t.Helper()
			time.Sleep(10 * watchPeriod)
			synctest.Wait()
			if s := r.Status(); s.Applied != applied || s.Refused != refused {
				t.Errorf("%d reloads were applied and %d refused, want %d and %d", s.Applied, s.Refused, applied, refused)
			}
		}
		put(t, file, withTLS(2, cert))
		after(0, 1)
		put(t, cert, selfSigned(t))
		after(1, 1)
		must(t, os.Remove(cert))
		after(1, 2) // a mistake in the files of the certificate in force
		put(t, cert, selfSigned(t))
		after(2, 2)
		put(t, cert, selfSigned(t))
		after(3, 2) // it is renewed
		put(t, cert, "half of it")
		time.Sleep(watchPeriod + watchPeriod/2)
		put(t, cert, selfSigned(t))
		after(4, 2) // its files are replaced one after the other
		must(t, os.Remove(cert))
		must(t, os.Mkdir(cert, 0o700))
		after(4, 3)
		put(t, file, withTLS(3, cert+"x"))
		after(4, 4)
		put(t, file, withTLS(4, first))
		after(5, 4)
		put(t, cert+"x", selfSigned(t))
		after(5, 4)
		put(t, file, "max_connections: -")
		after(5, 5)
		must(t, os.Remove(first))
		after(5, 6) // once, although the mistake is still there
		stop()
		if want := `cause="the certificate has changed"`; strings.Count(log.String(), want) != 7 {
			t.Errorf("the log is\n%s\nwant %s in it 7 times", log, want)
		}
	})
}

// selfSigned returns a certificate and its key in PEM.
func selfSigned(t *testing.T) string {
	t.Helper()
	certificate, key := certtest.New(t)
	return string(certificate) + string(key)
}

func TestReloadOfTheLevel(t *testing.T) {
	file := filepath.Join(t.TempDir(), "petstore.yaml")
	put(t, file, "log: {level: warn}")
	r, log := testReloader(t, file, func(*config.Config) error { return nil })
	level := new(slog.LevelVar)
	level.Set(r.current.Log.Level)
	r.setLevel, r.logger = level.Set, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level}))

	r.logger.Info("too low")
	put(t, file, "log: {level: debug, format: text}")
	r.reload("test")
	r.logger.Debug("low")
	put(t, file, "log: {level: loud}")
	r.reload("test")
	put(t, file, "log: {level: error, format: text}")
	r.reload("test")
	r.logger.Warn("too low again")

	want := []string{
		`level=WARN msg="reloaded the settings" cause=test file=`, "msg=low", "refused", "changed=[log.level] need_restart=[log.format]",
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	for i, want := range want {
		if i >= len(lines) || !strings.Contains(lines[i], want) {
			t.Fatalf("the log is\n%s\nwant a line with %q as line %d", log, want, i+1)
		}
	}
	if len(lines) != len(want) {
		t.Errorf("the log has %d lines, want %d\n%s", len(lines), len(want), log)
	}
}
