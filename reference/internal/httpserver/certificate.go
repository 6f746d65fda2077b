package httpserver

import (
	"crypto/tls"
	"fmt"
	"os"
)

// LoadCertificate reads a certificate chain and its private key from PEM files. It never
// waits: a file that is not a regular one, such as a pipe, is an error.
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

// maxPEM is the size of the largest file of a certificate in bytes.
const maxPEM = 1 << 20

// readRegular reads a regular file. A pipe would block a reload, and then the end of the
// server, for ever.
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
