package main_test

import (
	"testing"
	"time"
)

// The metrics say when an operation is removed and when the certificate expires, by the
// settings and the files as they are now.
func TestMetricsOfDates(t *testing.T) {
	t.Parallel()
	const (
		sunset = `petstore_deprecation_sunset_timestamp_seconds{gatehouse_operation="getPet"}`
		expiry = "petstore_certificate_expiry_timestamp_seconds"
	)
	dir := t.TempDir()
	before := time.Now().Unix()
	(&certificate{names: []string{"one"}}).write(t, dir) // valid for an hour
	const withTLS = "tls_cert: cert.pem\ntls_key: key.pem\n"
	writeFile(t, dir, "petstore.yaml", withTLS)
	p := serve(t, dir, "--config=petstore.yaml")
	m := p.metrics(t)
	if want := time.Date(2030, time.December, 5, 0, 0, 0, 0, time.UTC); m[sunset] != float64(want.Unix()) {
		t.Errorf("%s is %v, want %v", sunset, m[sunset], want.Unix())
	}
	if got, first := m[expiry], float64(before+3600); got < first || got > first+patience.Seconds() {
		t.Errorf("%s is %v, want an hour after the certificate was made, %v", expiry, got, first)
	}

	writeFile(t, dir, "petstore.yaml", withTLS+
		"deprecations: {getPet: {since: 2025-12-05, sunset: 2031-01-01}, getUsage: {since: 2025-12-05}}\n")
	p.hangUp(t, reloaded)
	m = p.metrics(t)
	if want := time.Date(2031, time.January, 1, 0, 0, 0, 0, time.UTC); m[sunset] != float64(want.Unix()) {
		t.Errorf("after a reload, %s is %v, want %v", sunset, m[sunset], want.Unix())
	}
	if got, ok := m[`petstore_deprecation_sunset_timestamp_seconds{gatehouse_operation="getUsage"}`]; ok {
		t.Errorf("an operation without a sunset has %v, want none", got)
	}
	if got, ok := serve(t, t.TempDir()).metrics(t)[expiry]; ok {
		t.Errorf("%s is %v without TLS, want none", expiry, got)
	}
}
