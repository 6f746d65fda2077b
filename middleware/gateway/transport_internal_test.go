package gateway

import (
	"net/http"
	"testing"
	"time"
)

func TestTransport(t *testing.T) {
	got, ok := newTransport().(*http.Transport)
	if !ok || got == http.DefaultTransport || http.DefaultTransport.(*http.Transport).DisableCompression {
		t.Fatal("newTransport changes http.DefaultTransport, want a copy")
	}
	if got.MaxIdleConnsPerHost != 100 || got.ResponseHeaderTimeout != time.Minute || !got.DisableCompression {
		t.Errorf("newTransport keeps %d connections, waits %v and decompresses %v; want 100, 1m0s, false",
			got.MaxIdleConnsPerHost, got.ResponseHeaderTimeout, !got.DisableCompression)
	}
}

// A program may replace http.DefaultTransport, to observe all of its requests.
func TestReplacedDefaultTransport(t *testing.T) {
	before := http.DefaultTransport
	t.Cleanup(func() { http.DefaultTransport = before })
	http.DefaultTransport = http.NewFileTransport(http.Dir("."))
	if got := newTransport(); got != http.DefaultTransport {
		t.Errorf("newTransport returns %T, want http.DefaultTransport", got)
	}
}
