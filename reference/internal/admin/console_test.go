package admin_test

import (
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/pages"
)

// The console is revalidated and has the policy of a page. A browser can open it from a
// link on another page, but not load or frame it there.
func TestConsole(t *testing.T) {
	h := newHandler(t, withToken)
	w := serve(h, "GET", "/", local)
	if got := w.Header().Get("Content-Security-Policy"); w.Code != 200 || got != pages.Policy || w.Header().Get("Cache-Control") != "no-cache" {
		t.Errorf("GET /: %d with the policy %q, want 200 with that of a page", w.Code, got)
	}
	if again := serve(h, "GET", "/", local, "If-None-Match: "+w.Header().Get("ETag")); again.Code != 304 {
		t.Errorf("GET / with its ETag: %d, want 304", again.Code)
	}
	for _, tt := range []struct {
		path, dest string
		want       int
	}{
		{"/", "document", 200},
		{"/", "iframe", 403},
		{"/", "empty", 403},
		{"/console/console.js", "script", 403},
		{"/bans", "document", 403},
		{"/debug/pprof/", "document", 403},
	} {
		if w := serve(h, "GET", tt.path, local, withAuth, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: "+tt.dest); w.Code != tt.want {
			t.Errorf("GET %s of another page as %s: %d, want %d", tt.path, tt.dest, w.Code, tt.want)
		}
	}
	for _, path := range []string{"/", "/console/console.js"} {
		if w := serve(newHandler(t, nil), "GET", path, local, "Host: evil.example:9090"); w.Code != 421 {
			t.Errorf("GET %s by another name: %d, want 421", path, w.Code)
		}
	}
	if w := serve(h, "DELETE", "/?owner=ada", local, withAuth, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Dest: document"); w.Code != 403 {
		t.Errorf("DELETE / of another page: %d, want 403", w.Code)
	}
}
