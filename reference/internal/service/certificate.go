package service

import (
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/server"
)

// checkCertificate checks the certificate before anything is opened, so that the error
// can name the setting.
func checkCertificate(c *config.Config) error {
	if !c.TLS() {
		return nil
	}
	if _, err := server.LoadCertificate(c.TLSCert, c.TLSKey); err != nil {
		return c.Errorf("tls_cert", "%w; set tls_cert to a PEM file with the certificate chain, and tls_key to one with its private key", err)
	}
	return nil
}
