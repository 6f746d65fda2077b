package main_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"testing"
	"time"
)

// writeCertificate makes a certificate for an hour, of names that are not those of this
// machine and with a signer that it does not trust: cert.pem, with both, and key.pem.
func writeCertificate(t *testing.T, folder string) {
	t.Helper()
	key, issuerKey := newKey(t), newKey(t)
	now := time.Now()
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "petstore test"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"*.pets.example"},
	}
	issuer := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "petstore test issuer"},
		NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	chain := append(signed(t, leaf, issuer, key, issuerKey), signed(t, issuer, issuer, issuerKey, issuerKey)...)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	must(t, os.MkdirAll(folder, 0o755))
	writeFile(t, folder, "cert.pem", string(chain))
	writeFile(t, folder, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key
}

func signed(t *testing.T, c, by *x509.Certificate, key, byKey *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, byKey)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
