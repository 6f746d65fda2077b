package httpserver

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
)

var must = testcheck.NoError

func TestCertificateFollowsItsFiles(t *testing.T) {
	certFile, keyFile := filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	firstCert, firstKey := Issue(t, "first")
	secondCert, secondKey := Issue(t, "second")
	Put(t, certFile, firstCert)
	Put(t, keyFile, firstKey)

	var log bytes.Buffer
	c, err := loadCertificate(certFile, keyFile, slog.New(slog.NewTextHandler(&log, nil)))
	must(t, err)
	now := time.Now()
	c.now = func() time.Time { return now }
	shown := func() string {
		t.Helper()
		pair, err := c.get(nil)
		must(t, err)
		return pair.Leaf.Subject.CommonName
	}
	steps := []struct {
		name   string
		change func()
		wait   time.Duration
		want   string
		errors int // lines so far that complain
	}{
		{"nothing has changed", func() {}, certificateAge, "first", 0},
		{"the certificate without its key", func() { Put(t, certFile, secondCert) }, certificateAge, "first", 1},
		{"still without its key", func() {}, certificateAge, "first", 1},
		{"the key, before the files are looked at again", func() { Put(t, keyFile, secondKey) }, certificateAge - 1, "first", 1},
		{"the key", func() {}, 1, "second", 1},
		{"a file that is no certificate", func() { Put(t, certFile, []byte("x")) }, certificateAge, "second", 2},
		{"a file that is gone", func() { os.Remove(certFile) }, certificateAge, "second", 3},
		{"the first pair, back again", func() { Put(t, certFile, firstCert); Put(t, keyFile, firstKey) }, certificateAge, "first", 3},
	}
	for _, step := range steps {
		step.change()
		now = now.Add(step.wait)
		if got := shown(); got != step.want {
			t.Errorf("%s: clients are shown the %s certificate, want the %s", step.name, got, step.want)
		}
		if got := strings.Count(log.String(), "level=ERROR"); got != step.errors {
			t.Errorf("%s: %d lines complain, want %d:\n%s", step.name, got, step.errors, log.String())
		}
	}
}
