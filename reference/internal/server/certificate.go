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

// certificateAge is for how long the files are not looked at again.
const certificateAge = time.Second

// certificate is a certificate that follows its files. They are looked at when a
// client comes, so that there is no goroutine to end, and files that are replaced
// through symbolic links are seen too.
type certificate struct {
	certFile, keyFile string
	logger            *slog.Logger
	now               func() time.Time
	current           atomic.Pointer[tls.Certificate]

	mu        sync.Mutex
	looked    time.Time // when the files were looked at last
	loaded    stamps    // of the files that current is from
	complaint string    // what was logged last about files that are no good
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
	if c.mu.TryLock() { // another handshake is looking otherwise
		if now := c.now(); now.Sub(c.looked) >= certificateAge {
			c.looked = now
			c.follow()
		}
		c.mu.Unlock()
	}
	return c.current.Load(), nil
}

// follow loads the files if they have changed. While they are replaced one after
// the other they do not fit together; then it is tried again the next time.
func (c *certificate) follow() {
	s, err := stampsOf(c.certFile, c.keyFile)
	if err == nil && s.equal(c.loaded) {
		return
	}
	if err = c.load(); err == nil {
		c.complaint = ""
		c.logger.Info("certificate replaced", slog.String("file", c.certFile))
		return
	}
	if text := err.Error(); text != c.complaint { // not once a second
		c.complaint = text
		c.logger.Error("new certificate refused, the old one stays", slog.Any("error", err))
	}
}

func (c *certificate) load() error {
	// Taken before the files are read: a change in between is seen the next time.
	s, err := stampsOf(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	c.current.Store(&pair)
	c.loaded = s
	return nil
}

// stamps tell whether files are the same as before.
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
