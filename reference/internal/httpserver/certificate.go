package httpserver

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificateAge is the time between two checks of the files.
const certificateAge = time.Second

// certificate is a certificate that is reloaded when its files change. The files are
// read at a handshake: that needs no goroutine, and sees files that are replaced through
// symbolic links.
type certificate struct {
	certFile, keyFile string
	logger            *slog.Logger

	mu         sync.Mutex
	current    *tls.Certificate
	chain, key []byte    // what current was made from
	checked    time.Time // when the files were last read
	lastError  string    // the last error that was logged
}

func loadCertificate(certFile, keyFile string, logger *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, logger: logger}
	if _, err := c.load(); err != nil {
		return nil, err
	}
	return c, nil
}

// get is for [tls.Config.GetCertificate].
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.checked) >= certificateAge {
		c.checked = now
		c.reload()
	}
	return c.current, nil
}

// reload loads the files if they have changed. While they are replaced one after the
// other they do not match; the next check tries again. The caller holds c.mu.
func (c *certificate) reload() {
	changed, err := c.load()
	if err == nil {
		c.lastError = ""
		if changed {
			c.logger.Info("loaded the new certificate", slog.String("file", c.certFile))
		}
		return
	}
	if text := err.Error(); text != c.lastError { // not once a second
		c.lastError = text
		c.logger.Error("cannot load the new certificate; the old one stays in use", slog.Any("error", err))
	}
}

// load reports whether the certificate has changed. If it returns an error, the old one
// stays.
func (c *certificate) load() (changed bool, err error) {
	chain, key, err := readPair(c.certFile, c.keyFile)
	if err != nil {
		return false, fmt.Errorf("certificate: %w", err)
	}
	if bytes.Equal(chain, c.chain) && bytes.Equal(key, c.key) {
		return false, nil
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return false, fmt.Errorf("certificate: %w", err)
	}
	c.current, c.chain, c.key = &pair, chain, key
	return true, nil
}

// LoadCertificate reads a certificate chain and its private key from PEM files. It never
// waits: a file that is not a regular one, such as a pipe, is an error.
func LoadCertificate(certFile, keyFile string) (tls.Certificate, error) {
	chain, key, err := readPair(certFile, keyFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(chain, key)
}

func readPair(certFile, keyFile string) (chain, key []byte, err error) {
	if chain, err = readRegular(certFile); err != nil {
		return nil, nil, err
	}
	key, err = readRegular(keyFile)
	return chain, key, err
}

// maxPEM is the size of the largest file of a certificate in bytes.
const maxPEM = 1 << 20

// readRegular reads a file. A pipe would keep a handshake, a reload and the end of the
// server waiting for ever.
func readRegular(name string) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("open %s: it is not a regular file", name)
	case info.Size() > maxPEM:
		return nil, fmt.Errorf("read %s: the file is larger than 1 MiB", name)
	}
	return os.ReadFile(name)
}
