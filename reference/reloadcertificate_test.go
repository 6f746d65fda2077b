package main_test

import (
	"crypto/tls"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

func TestReloadOfCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"one", "two"} {
		(&certificate{names: []string{name}, folder: name}).write(t, dir)
	}
	pair := func(cert, key string) string {
		return fmt.Sprintf("tls_cert: %s/cert.pem\ntls_key: %s/key.pem\n", cert, key)
	}
	writeFile(t, dir, "petstore.yaml", pair("one", "one"))
	p := serve(t, dir, "--config=petstore.yaml")
	shown := func() string {
		t.Helper()
		c, err := tls.Dial("tcp", strings.TrimPrefix(p.api, "https://"), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].DNSNames[0]
	}
	writeFile(t, dir, "petstore.yaml", pair("one", "two")+"draft_headers: true\n")
	line := p.hangUp(t, refusedReload)
	if got := fmt.Sprint(line["error"]); !strings.HasPrefix(got, "petstore.yaml:1:11: tls_cert: ") || !strings.Contains(got, "private key does not match") {
		t.Errorf("the log says %q, want that the key is that of another certificate", got)
	}
	if got := shown(); got != "one" {
		t.Errorf("after a reload that was refused, clients see certificate %s, want one", got)
	}
	writeFile(t, dir, "petstore.yaml", pair("two", "two"))
	p.hangUp(t, reloaded)
	if got := shown(); got != "two" {
		t.Errorf("after the reload, clients see certificate %s, want two", got)
	}
	writeFile(t, filepath.Join(dir, "two"), "key.pem", "")
	if got := fmt.Sprint(p.hangUp(t, refusedReload)["error"]); !strings.Contains(got, "tls_cert") {
		t.Errorf("the log says %q, want that the certificate cannot be loaded", got)
	}
	if got := shown(); got != "two" {
		t.Errorf("with a broken file, clients see certificate %s, want two", got)
	}
}
