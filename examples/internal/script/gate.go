package script

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
)

// CheckGate checks a service behind the gate: GET /pets/17, and /broken, which fails. The
// log names the route of a pet as the framework does.
func CheckGate(t *testing.T, newRouter func(*slog.Logger) (http.Handler, error), route string) {
	synctest.Test(t, func(t *testing.T) { // begins at midnight
		var log bytes.Buffer
		h, err := newRouter(slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			method, path, token   string
			status                int
			remaining, body, line string
		}{
			{"GET", "/pets/17", "token-of-ann", 200, "2", "Rex, a pet of ann\n", "route=" + route + " status=200 bytes=18"},
			{"GET", "/broken", "token-of-ann", 500, "1", `"code":"internal"`, "route=/broken status=500"},
			{"GET", "/pets/18", "token-of-ann", 404, "1", `"code":"pet_not_found"`, "status=404"}, // the 500 was given back
			{"PUT", "/pets/17", "token-of-ann", 405, "0", `"code":"method_not_allowed"`, "status=405"},
			{"GET", "/pets/17", "token-of-ann", 429, "0", `"code":"rate_limit_exceeded"`, "status=429"},
			{"GET", "/pets/17", "guessed", 401, "1", `"code":"invalid_api_key"`, "status=401"},
			{"GET", "/nowhere", "", 401, "0", `"code":"missing_api_key"`, "status=401"},
			{"GET", "/pets/17", "", 429, "0", `"code":"rate_limit_exceeded"`, "status=429"},
		} {
			log.Reset()
			r := httptest.NewRequest(test.method, test.path, nil)
			if test.token != "" {
				r.Header.Set("Authorization", "Bearer "+test.token)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if got := w.Header().Get("X-RateLimit-Remaining"); w.Code != test.status || got != test.remaining || !strings.Contains(w.Body.String(), test.body) {
				t.Errorf("%s %s: %d with %s left: %s, want %d with %s: %s", test.method, test.path, w.Code, got, w.Body, test.status, test.remaining, test.body)
			}
			if !strings.Contains(log.String(), test.line) {
				t.Errorf("%s %s: the log lacks %s: %s", test.method, test.path, test.line, &log)
			}
			if w.Code == 405 && !strings.Contains(w.Header().Get("Allow"), "GET") {
				t.Errorf("Allow is %q, want GET in it", w.Header().Get("Allow"))
			}
		}
	})
}
