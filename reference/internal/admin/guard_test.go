package admin_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/admin"
)

// linesOf returns the lines of a log, and empties it.
func linesOf(t *testing.T, log *bytes.Buffer) (lines []map[string]any) {
	t.Helper()
	for text := range strings.Lines(log.String()) {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("the log has %q: %v", text, err)
		}
		delete(line, "time")
		delete(line, "request_id")
		lines = append(lines, line)
	}
	log.Reset()
	return lines
}

// serve answers a request without a listener.
func serve(h http.Handler, method, target string, fields ...string) *httptest.ResponseRecorder {
	return send(h, httptest.NewRequest(method, target, nil), fields)
}

// post is serve for a request with a body.
func post(h http.Handler, target, contentType, body string) *httptest.ResponseRecorder {
	return send(h, httptest.NewRequest("POST", target, strings.NewReader(body)), []string{"Content-Type: " + contentType})
}

func send(h http.Handler, r *http.Request, fields []string) *httptest.ResponseRecorder {
	r.Host, r.RemoteAddr = "localhost:9090", local
	for _, line := range fields {
		switch name, value, _ := strings.Cut(line, ": "); {
		case value == "": // the field is left out
		case name == "Host":
			r.Host = value
		default:
			r.Header.Add(name, value)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const (
	local    = "127.0.0.1:50000"
	withAuth = "Authorization: Bearer " + token
)

// A page of another origin can make a browser send requests here. None is served,
// whatever it is for and whatever goes with it.
func TestCrossSiteRequestsAreRefused(t *testing.T) {
	open, guarded := newHandler(t, nil), newHandler(t, withToken)
	const text = `{"code":"cross_site_request","message":"The admin listener does not answer requests that a browser sends for a page of another origin.",`
	for _, target := range []string{
		"GET /healthz", "GET /metrics", "GET /bans", "POST /bans", "DELETE /bans?owner=ada", "GET /debug/pprof/profile?seconds=1",
		"GET /nothing", "OPTIONS /bans", "GET /console/console.json", "POST /console/unban",
	} {
		method, path, _ := strings.Cut(target, " ")
		for _, field := range []string{
			"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Sec-Fetch-Site: anything", "Sec-Fetch-Site: none, cross-site",
			"Origin: https://evil.example", "Origin: null", "Origin: http://localhost:9091", "Origin: http://localhost", "Origin: %",
		} {
			for _, w := range []*httptest.ResponseRecorder{serve(open, method, path, field), serve(guarded, method, path, field, withAuth)} {
				if w.Code != 403 || !strings.Contains(w.Body.String(), text) {
					t.Errorf("%s with %q: %d %s, want 403 and %s", target, field, w.Code, w.Body, text)
				}
			}
		}
	}
	for _, fields := range [][]string{nil, {"Sec-Fetch-Site: none"}, {"Sec-Fetch-Site: same-origin"}, {"Origin: http://localhost:9090"}} {
		if w := serve(open, "GET", "/debug/pprof/", fields...); w.Code != 200 {
			t.Errorf("a profile with %q: %d, want 200", fields, w.Code)
		}
	}
	if w := serve(open, "DELETE", "/bans?owner=ada"); w.Body.String() != `{"unbanned":true}`+"\n" {
		t.Errorf("after all that, unbanning ada: %s, want it to be there still", w.Body)
	}
}

// Each line says who did what, and how it ended. No line holds a token.
func TestActionsAreLogged(t *testing.T) {
	log := new(bytes.Buffer)
	h := newHandler(t, func(c *admin.Config) {
		withToken(c)
		c.Logger = slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	const wrong = "Authorization: Bearer wrong-token-wrong-token"
	for _, tt := range []struct {
		target, field    string
		level, route     string
		status           float64
		subject, outcome string
	}{
		{"DELETE /bans?owner=ada", withAuth, "INFO", "/bans", 200, "owner:ada", "unbanned"},
		{"DELETE /bans?owner=ada", withAuth, "INFO", "/bans", 200, "owner:ada", "was not banned"},
		{"DELETE /bans?network=192.0.2.9", withAuth, "INFO", "/bans", 200, "network:192.0.2.9/32", "was not banned"},
		{"POST /bans", withAuth, "WARN", "/bans", 400, "", ""},
		{"DELETE /bans?token=" + token, withAuth, "WARN", "/bans", 400, "", ""},
		{"GET /" + token, withAuth, "WARN", "", 404, "", ""},
		{"GET /bans", withAuth, "DEBUG", "/bans", 200, "", ""},
		{"GET /debug/pprof/cmdline", withAuth, "INFO", "/debug/pprof/cmdline", 200, "", ""},
		{"GET /healthz", "", "DEBUG", "/healthz", 200, "", ""},
		{"GET /metrics", "", "WARN", "/metrics", 401, "", ""},
		{"DELETE /bans?owner=ada", wrong, "WARN", "/bans", 401, "", "wrong token"},
		{"GET /readyz", wrong, "WARN", "/readyz", 200, "", "wrong token"},
		{"GET /bans", "Sec-Fetch-Site: cross-site", "WARN", "/bans", 403, "", ""},
	} {
		method, path, _ := strings.Cut(tt.target, " ")
		serve(h, method, path, tt.field)
		want := map[string]any{"level": tt.level, "msg": "admin request", "remote": local, "method": method, "route": tt.route, "status": tt.status}
		if tt.subject != "" {
			want["subject"] = tt.subject
		}
		if tt.outcome != "" {
			want["outcome"] = tt.outcome
		}
		if diff := cmp.Diff([]map[string]any{want}, linesOf(t, log)); diff != "" {
			t.Errorf("%s with %q, the log (-want +got):\n%s", tt.target, tt.field, diff)
		}
	}
}
