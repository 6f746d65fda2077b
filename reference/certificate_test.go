package main_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// certificate says what a certificate is for.
type certificate struct {
	names, ips []string
	signed     bool   // by another one, which comes second in the chain
	folder     string // below that of the test
}

// write makes the certificate: cert.pem and key.pem in its folder.
func (c *certificate) write(t *testing.T, dir string) {
	t.Helper()
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "petstore test"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     c.names,
	}
	for _, ip := range c.ips {
		leaf.IPAddresses = append(leaf.IPAddresses, net.ParseIP(ip))
	}
	key := newKey(t)
	issuer, issuerKey := leaf, key
	if c.signed {
		issuerKey = newKey(t)
		issuer = &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "petstore test issuer"},
			NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter,
			IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		}
	}
	chain := signed(t, leaf, issuer, key, issuerKey)
	if c.signed {
		chain = append(chain, signed(t, issuer, issuer, issuerKey, issuerKey)...)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}

	folder := filepath.Join(dir, c.folder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, folder, "cert.pem", string(chain))
	writeFile(t, folder, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func signed(t *testing.T, c, by *x509.Certificate, key, byKey *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, byKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
