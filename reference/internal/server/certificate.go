package server

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// certificateAge is the time between two checks of the files.
const certificateAge = time.Second

// certificate is a certificate that is reloaded when its files change. The files are
// checked at a handshake: that needs no goroutine, and sees files that are replaced
// through symbolic links.
type certificate struct {
	certFile, keyFile string
	logger            *slog.Logger
	now               func() time.Time
	current           atomic.Pointer[tls.Certificate]

	mu        sync.Mutex
	checked   time.Time // when the files were last checked
	loaded    stamps    // of the files that current is from
	lastError string    // the last error that was logged
}

// CertificateExpires returns the time at which the certificate in use expires, or the
// zero time without TLS. Like a handshake, it notices that the files have changed.
func (s *Server) CertificateExpires() time.Time {
	c := s.cert.Load()
	if c == nil {
		return time.Time{}
	}
	pair, err := c.get(nil)
	if err != nil || pair.Leaf == nil {
		return time.Time{}
	}
	return pair.Leaf.NotAfter
}

func loadCertificate(certFile, keyFile string, logger *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, logger: logger, now: time.Now}
	if err := c.load(); err != nil {
		return nil, err
	}
	return c, nil
}

// get is for [tls.Config.GetCertificate].
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c.mu.TryLock() { // otherwise another handshake checks
		if now := c.now(); now.Sub(c.checked) >= certificateAge {
			c.checked = now
			c.reload()
		}
		c.mu.Unlock()
	}
	return c.current.Load(), nil
}

// reload loads the files if they have changed. While they are replaced one after the
// other they do not match; the next check tries again.
func (c *certificate) reload() {
	s, err := stampsOf(c.certFile, c.keyFile)
	if err == nil && s.equal(c.loaded) {
		return
	}
	if err = c.load(); err == nil {
		c.lastError = ""
		c.logger.Info("loaded the new certificate", slog.String("file", c.certFile))
		return
	}
	if text := err.Error(); text != c.lastError { // not once a second
		c.lastError = text
		c.logger.Error("cannot load the new certificate; the old one stays in use", slog.Any("error", err))
	}
}

func (c *certificate) load() error {
	// Taken before the files are read, so that the next check sees a later change.
	s, err := stampsOf(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	pair, err := LoadCertificate(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	c.current.Store(&pair)
	c.loaded = s
	return nil
}

// stamps identify versions of the files.
type stamps []os.FileInfo

func stampsOf(files ...string) (stamps, error) {
	var s stamps
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		s = append(s, info)
	}
	return s, nil
}

func (s stamps) equal(o stamps) bool {
	if len(s) != len(o) {
		return false
	}
	for i := range s {
		if !os.SameFile(s[i], o[i]) || !s[i].ModTime().Equal(o[i].ModTime()) || s[i].Size() != o[i].Size() {
			return false
		}
	}
	return true
}
