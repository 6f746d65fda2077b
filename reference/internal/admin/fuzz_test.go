package admin_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
)

// Whatever a client with the token sends, the server neither fails nor answers with
// something that is not JSON.
func FuzzRequests(f *testing.F) {
	for _, seed := range []struct{ method, target, body string }{
		{"POST", "/bans", `{"owner":"ada","seconds":60}`},
		{"POST", "/bans", `{"network":"2001:db8::/64","seconds":31622400}`},
		{"DELETE", "/bans?network=192.0.2.1", ``},
		{"POST", "/keys", `{"name":"n","owner":"o","plan":"enterprise","quotas":["1/day"],"limits":["1/hour"],"expiresIn":"1h"}`},
		{"POST", "/keys/key_0123456789abcdef/rotate", `{"overlap":"1h","expiresIn":"0s"}`},
		{"DELETE", "/keys/key_0", ``},
		{"GET", "/usage?owner=%00", ``},
		{"GET", "/audit?since=2026-11-22T00:00:00Z&limit=5", ``},
		{"GET", "/top?x=%ff", ``},
	} {
		f.Add(seed.method, seed.target, seed.body)
	}
	h := newHandler(f, nil)
	f.Fuzz(func(t *testing.T, method, target, body string) {
		r := httptest.NewRequest("GET", "http://localhost/", strings.NewReader(body))
		u, err := r.URL.Parse(target)
		if err != nil || !strings.HasPrefix(u.Path, "/") || strings.HasPrefix(u.Path, "/debug/") || u.Host != "localhost" {
			t.Skip("not a target on this host, or a profile")
		}
		r.Method, r.URL, r.RemoteAddr = method, u, local
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Errorf("%s %s %q: %d %s", method, target, body, w.Code, w.Body)
		}
		if w.Header().Get("Content-Type") == "application/json" && w.Body.Len() > 0 && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %s %q: the answer is not JSON: %s", method, target, body, w.Body)
		}
	})
}
