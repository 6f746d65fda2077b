package httpserver

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
)

var must = testcheck.NoError

// followed is a certificate, and what the log says about it.
type followed struct {
	*certificate
	log bytes.Buffer
}

func follow(t *testing.T) *followed {
	t.Helper()
	f := new(followed)
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	cert, key := Issue(t, "first")
	Put(t, certFile, cert)
	Put(t, keyFile, key)
	var err error
	f.certificate, err = loadCertificate(certFile, keyFile, slog.New(slog.NewTextHandler(&f.log, nil)))
	must(t, err)
	return f
}

// shown returns the name in the certificate that clients are shown.
func (f *followed) shown(t *testing.T) string {
	t.Helper()
	pair, err := f.get(nil)
	must(t, err)
	return pair.Leaf.Subject.CommonName
}

func TestCertificateFollowsItsFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := follow(t)
		firstCert, firstKey := c.chain, c.key
		secondCert, secondKey := Issue(t, "second")
		steps := []struct {
			name   string
			change func()
			wait   time.Duration
			want   string
			errors int // lines so far that complain
		}{
			{"nothing has changed", func() {}, certificateAge, "first", 0},
			{"the certificate without its key", func() { Put(t, c.certFile, secondCert) }, certificateAge, "first", 1},
			{"still without its key", func() {}, certificateAge, "first", 1},
			{"the key, before the files are read again", func() { Put(t, c.keyFile, secondKey) }, certificateAge - 1, "first", 1},
			{"the key", func() {}, 1, "second", 1},
			{"a file that is no certificate", func() { Put(t, c.certFile, []byte("x")) }, certificateAge, "second", 2},
			{"a file that is gone", func() { os.Remove(c.certFile) }, certificateAge, "second", 3},
			{"the second pair, back again", func() { Put(t, c.certFile, secondCert) }, certificateAge, "second", 3},
			{"a file that is gone again", func() { os.Remove(c.certFile) }, certificateAge, "second", 4},
			{"the first pair", func() { Put(t, c.certFile, firstCert); Put(t, c.keyFile, firstKey) }, certificateAge, "first", 4},
		}
		c.shown(t)
		for _, step := range steps {
			step.change()
			time.Sleep(step.wait)
			if got := c.shown(t); got != step.want {
				t.Errorf("%s: clients are shown the %s certificate, want the %s", step.name, got, step.want)
			}
			if got := strings.Count(c.log.String(), "level=ERROR"); got != step.errors {
				t.Errorf("%s: %d lines complain, want %d:\n%s", step.name, got, step.errors, c.log.String())
			}
		}
	})
}
