package admin_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

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
func serve(h http.Handler, method, target, remote string, fields ...string) *httptest.ResponseRecorder {
	return send(h, httptest.NewRequest(method, target, nil), remote, fields)
}

// post is serve for a request with a body.
func post(h http.Handler, target, contentType, body string, fields ...string) *httptest.ResponseRecorder {
	return send(h, httptest.NewRequest("POST", target, strings.NewReader(body)), local, append(fields, "Content-Type: "+contentType))
}

func send(h http.Handler, r *http.Request, remote string, fields []string) *httptest.ResponseRecorder {
	r.Host, r.RemoteAddr = "localhost:9090", remote
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
	targets := []string{
		"GET /healthz", "GET /readyz", "GET /metrics", "GET /bans", "DELETE /bans?owner=ada", "GET /debug/pprof/", "GET /debug/pprof/profile?seconds=1",
		"GET /debug/pprof/goroutine", "POST /debug/pprof/symbol", "GET /debug/pprof/cmdline", "GET /nothing", "OPTIONS /bans",
		"POST /bans", "GET /console/console.json", "POST /console/unban",
	}
	for _, target := range targets {
		method, path, _ := strings.Cut(target, " ")
		for _, fields := range [][]string{
			{"Sec-Fetch-Site: cross-site"}, {"Sec-Fetch-Site: same-site"}, {"Sec-Fetch-Site: anything"},
			{"Sec-Fetch-Site: none, cross-site"}, {"sec-fetch-site: cross-site", "Sec-Fetch-Mode: navigate"},
			{"Origin: https://evil.example"}, {"Origin: null"}, {"Origin: http://localhost:9091"}, {"Origin: http://localhost"}, {"Origin: %"},
		} {
			for _, w := range []*httptest.ResponseRecorder{serve(open, method, path, local, fields...), serve(guarded, method, path, local, append(fields, withAuth)...)} {
				if w.Code != 403 || !strings.Contains(w.Body.String(), text) {
					t.Errorf("%s with %q: %d %s, want 403 and %s", target, fields, w.Code, w.Body, text)
				}
			}
		}
	}
	for _, fields := range [][]string{nil, {"Sec-Fetch-Site: none"}, {"Sec-Fetch-Site: same-origin"}, {"Origin: http://localhost:9090"}} {
		if w := serve(open, "GET", "/debug/pprof/", local, fields...); w.Code != 200 {
			t.Errorf("a profile with %q: %d, want 200", fields, w.Code)
		}
	}
	if w := serve(open, "DELETE", "/bans?owner=ada", local); w.Body.String() != `{"unbanned":true}`+"\n" {
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
	line := func(level, method, route string, status int, more ...string) map[string]any {
		l := map[string]any{
			"level": level, "msg": "admin request", "remote": local, "method": method, "route": route, "status": float64(status),
		}
		for i := 0; i < len(more); i += 2 {
			l[more[i]] = more[i+1]
		}
		return l
	}
	for _, tt := range []struct {
		target string
		fields []string
		want   []map[string]any
	}{
		{"DELETE /bans?owner=ada", []string{withAuth}, []map[string]any{line("INFO", "DELETE", "/bans", 200, "subject", "owner:ada", "outcome", "unbanned")}},
		{"DELETE /bans?owner=ada", []string{withAuth}, []map[string]any{line("INFO", "DELETE", "/bans", 200, "subject", "owner:ada", "outcome", "was not banned")}},
		{"DELETE /bans?network=192.0.2.9", []string{withAuth}, []map[string]any{line("INFO", "DELETE", "/bans", 200, "subject", "network:192.0.2.9/32", "outcome", "was not banned")}},
		{"POST /bans", []string{withAuth}, []map[string]any{line("WARN", "POST", "/bans", 400)}},
		{"DELETE /bans?token=" + token, []string{withAuth}, []map[string]any{line("WARN", "DELETE", "/bans", 400)}},
		{"GET /bans", []string{withAuth}, []map[string]any{line("DEBUG", "GET", "/bans", 200)}},
		{"GET /debug/pprof/cmdline", []string{withAuth}, []map[string]any{line("INFO", "GET", "/debug/pprof/cmdline", 200)}},
		{"GET /bans", []string{wrong}, []map[string]any{line("WARN", "GET", "/bans", 401, "outcome", "wrong token")}},
		{"DELETE /bans?owner=ada", []string{wrong}, []map[string]any{line("WARN", "DELETE", "/bans", 401, "outcome", "wrong token")}},
		{"GET /bans", nil, []map[string]any{line("WARN", "GET", "/bans", 401)}},
		{"GET /bans", []string{withAuth, "Sec-Fetch-Site: cross-site"}, []map[string]any{line("WARN", "GET", "/bans", 403)}},
		{"GET /" + token, []string{withAuth}, []map[string]any{line("WARN", "GET", "", 404)}},
		{"GET /healthz", nil, []map[string]any{line("DEBUG", "GET", "/healthz", 200)}},
		{"GET /readyz", []string{withAuth}, []map[string]any{line("DEBUG", "GET", "/readyz", 200)}},
		{"GET /metrics", []string{withAuth}, []map[string]any{line("DEBUG", "GET", "/metrics", 200)}},
		{"GET /metrics", nil, []map[string]any{line("WARN", "GET", "/metrics", 401)}},
		{"GET /readyz", []string{wrong}, []map[string]any{line("WARN", "GET", "/readyz", 200, "outcome", "wrong token")}},
	} {
		method, path, _ := strings.Cut(tt.target, " ")
		serve(h, method, path, local, tt.fields...)
		if diff := cmp.Diff(tt.want, linesOf(t, log)); diff != "" {
			t.Errorf("%s with %q, the log (-want +got):\n%s", tt.target, tt.fields, diff)
		}
	}
}

// After ten wrong tokens in a minute, a network gets 429 for further ones until the minute
// ends. The right token and health checks are never limited.
func TestWrongTokensAreLimited(t *testing.T) {
	now := time.Date(2026, time.November, 20, 12, 0, 5, 0, time.UTC)
	h := newHandler(t, func(c *admin.Config) {
		withToken(c)
		c.Now = func() time.Time { return now }
	})
	const wrong = "Authorization: Bearer wrong"
	want := func(times, status int, path, remote string, fields ...string) {
		t.Helper()
		for i := range times {
			w := serve(h, "GET", path, remote, fields...)
			retry, text := "", ""
			if status == 429 {
				retry = "55"
				text = `"Your network has sent too many requests with a wrong admin token. Wait as long as Retry-After says."`
			}
			if w.Code != status || !strings.Contains(w.Body.String(), text) || w.Header().Get("Retry-After") != retry || strings.Contains(w.Body.String(), token) {
				t.Errorf("%s from %s with %q, request %d: %d, Retry-After %q, %s; want %d", path, remote, fields, i+1, w.Code, w.Header().Get("Retry-After"), w.Body, status)
			}
		}
	}
	want(30, 200, "/bans", local, withAuth)
	want(20, 401, "/bans", local)
	want(10, 401, "/bans", local, wrong)
	want(10, 429, "/bans", local, wrong)
	want(30, 200, "/bans", local, withAuth)
	want(30, 200, "/healthz", local, wrong)
	want(30, 200, "/readyz", local, wrong)
	want(1, 200, "/readyz", local, withAuth)
	want(1, 401, "/bans", local)
	want(1, 401, "/bans", "192.0.2.1:5", wrong)
	now = now.Add(55 * time.Second)
	want(10, 401, "/bans", local, wrong)
}
