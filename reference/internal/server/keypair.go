package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

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
