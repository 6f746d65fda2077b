package browsertest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What a page must not do is noticed.
func TestProblemsAreNoticed(t *testing.T) {
	t.Parallel()
	const policy = "default-src 'none'; script-src 'self'; connect-src *"
	for want, script := range map[string]string{
		"the script failed: Uncaught Error: broken": `throw new Error("broken")`,
		"the script failed: Uncaught (in promise)":  `Promise.reject(new Error("broken"))`,
		"the console has error":                     `console.error("broken")`,
		"the browser logs: security":                `document.body.innerHTML = "<p style='color: red'>"`,
		"a request to another origin: http://127.1": `fetch("http://127.1.1.1:1/").catch(() => {})`,
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			mux := http.NewServeMux()
			mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Security-Policy", policy)
				w.Write([]byte(`<!doctype html><link rel="icon" href="data:,"><body><p id="done"><script src="/page.js" defer></script>`))
			})
			mux.HandleFunc("GET /page.js", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/javascript")
				w.Write([]byte(`setTimeout(() => { const p = document.createElement("p"); p.id = "end"; p.textContent = "end"; document.body.append(p) }, 100);` + script))
			})
			server := httptest.NewServer(mux)
			defer server.Close()
			page := Open(t, server.URL+"/")
			page.WaitText(t, "#end", "end")
			if got := strings.Join(page.take(), "\n"); !strings.Contains(got, want) {
				t.Errorf("noticed %q, want %q", got, want)
			}
		})
	}
}
