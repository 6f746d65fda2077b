package httpserver

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
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
	checked   time.Time     // when the files were last checked
	loaded    []os.FileInfo // versions of the files that current is from
	lastError string        // the last error that was logged
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
	s, err := versionsOf(c.certFile, c.keyFile)
	if err == nil && slices.EqualFunc(s, c.loaded, sameVersion) {
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
	s, err := versionsOf(c.certFile, c.keyFile)
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

// versionsOf identifies the present versions of files.
func versionsOf(files ...string) ([]os.FileInfo, error) {
	var versions []os.FileInfo
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		versions = append(versions, info)
	}
	return versions, nil
}

func sameVersion(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// maxPEM is the size of the largest file of a certificate in bytes.
const maxPEM = 1 << 20

// LoadCertificate reads a certificate chain and its private key from PEM files. It never
// waits: a file that is not a regular one, such as a pipe, is an error. That would
// otherwise keep a handshake, a reload and the end of the server waiting for ever.
func LoadCertificate(certFile, keyFile string) (tls.Certificate, error) {
	chain, err := readRegular(certFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := readRegular(keyFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(chain, key)
}

func readRegular(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("open %s: %w", name, errNotRegular)
	case info.Size() > maxPEM:
		return nil, fmt.Errorf("read %s: the file is larger than 1 MiB", name)
	}
	return io.ReadAll(io.LimitReader(f, maxPEM))
}

var errNotRegular = errors.New("it is not a regular file")

var errNilHandler = errors.New("server: the handler must not be nil")

// Reload replaces the handler and the options while the server serves. Running requests
// end with the old handler. OnReady, PlainHTTP, Logger and the timeouts of reading,
// writing and idling stay as they are. Connections over a lower limit are closed, once
// they are idle, when the next connection arrives.
//
// If Reload returns an error, nothing has changed. That is TLS
// that is turned on or off, and a certificate that cannot be loaded, which it also checks
// if its files are the same.
func (s *Server) Reload(handler http.Handler, o Options) error {
	if handler == nil {
		return errNilHandler
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.options
	if (o.CertFile == "") != (before.CertFile == "") {
		return errors.New("server: TLS cannot be turned on or off while the server runs")
	}
	o.OnReady, o.PlainHTTP, o.Logger = before.OnReady, before.PlainHTTP, before.Logger
	o.ReadHeaderTimeout, o.ReadTimeout = before.ReadHeaderTimeout, before.ReadTimeout
	o.WriteTimeout, o.IdleTimeout = before.WriteTimeout, before.IdleTimeout
	o = o.withDefaults()
	if s.limited != nil {
		if err := o.checkExposure(s.limited.Addr()); err != nil {
			return err
		}
	}
	if err := s.take(handler, o); err != nil {
		return err
	}
	if s.limited != nil && (o.MaxConns != before.MaxConns || o.MaxConnsPerNetwork != before.MaxConnsPerNetwork ||
		!slices.Equal(o.TrustedProxies, before.TrustedProxies)) {
		s.limited.setLimits(o.limits())
	}
	return nil
}
