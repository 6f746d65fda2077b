package admin_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/console"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/admin"
	"github.com/animalstore/gatehouse/reference/internal/api"
	settings "github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

var must = testcheck.NoError

const token = "a-token-that-is-long-enough"

// newHandler returns the admin handler over an engine that has banned ada.
func newHandler(t testing.TB, adjust func(*admin.Config)) http.Handler {
	t.Helper()
	engine, err := memory.New(memory.Options{})
	must(t, err)
	ban(t, engine, apikey.OwnerSubject("ada"))
	return handlerOn(t, engine, adjust)
}

// handlerOn returns the admin handler of a server that serves with an engine, and with the keys
// of some owners.
func handlerOn(t testing.TB, engine *memory.Limiter, adjust func(*admin.Config)) http.Handler {
	t.Helper()
	db := newStore(t, "ada", "bob")
	limiter := admin.Audited(engine, db, slog.New(slog.DiscardHandler), time.Now)
	ops, err := console.New(limiter, console.Options{Title: "petstore"})
	must(t, err)
	server := &admin.Server{
		Limiter: limiter, Console: ops, Store: db, Plan: plans.Of, DailyUse: db.ListDailyUse,
	}
	c := admin.Config{
		Server:  func() *admin.Server { return server },
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) }),
		Logger:  slog.New(slog.DiscardHandler),
	}
	if adjust != nil {
		adjust(&c)
	}
	h, err := admin.New(c)
	must(t, err)
	return h
}

// newStore returns a store with a key of each owner.
func newStore(t testing.TB, owners ...string) *sqlite.Store {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "petstore.db"), sqlite.Options{})
	must(t, err)
	t.Cleanup(func() { db.Close() })
	for _, owner := range owners {
		createKey(t, db, store.NewKey{Owner: owner, Plan: "free", Created: time.Now()})
	}
	return db
}

// createKey stores a key.
func createKey(t testing.TB, db store.Keys, k store.NewKey) {
	t.Helper()
	secret, err := api.NewKey()
	must(t, err)
	k.Name, k.Digest, k.LastFour = "n", secret.Digest(), secret.LastFour()
	_, err = db.CreateKey(t.Context(), k, store.Actor{Name: "test"})
	must(t, err)
}

var plans = settings.Default().Plans

func withToken(c *admin.Config) { c.Token = token }

func TestWhoMayAsk(t *testing.T) {
	open, guarded := newHandler(t, nil), newHandler(t, withToken)
	for _, tt := range []struct {
		name          string
		handler       http.Handler
		method, path  string
		host          string
		authorization string
		want          int
	}{
		{"health without a token", guarded, "GET", "/healthz", "", "", 200},
		{"readiness without a token", guarded, "GET", "/readyz", "", "", 200},
		{"bans without a token", guarded, "GET", "/bans", "", "", 401},
		{"bans with another token", guarded, "GET", "/bans", "", "Bearer " + token + "x", 401},
		{"bans with a part of the token", guarded, "GET", "/bans", "", "Bearer " + token[1:], 401},
		{"bans with the token", guarded, "GET", "/bans", "", "Bearer " + token, 200},
		{"unbanning without a token", guarded, "DELETE", "/bans?owner=ada", "", "", 401},
		{"profiles without a token", guarded, "GET", "/debug/pprof/", "", "", 401},
		{"profiles with the token", guarded, "GET", "/debug/pprof/", "", "Bearer " + token, 200},
		{"metrics without a token", guarded, "GET", "/metrics", "", "", 401},
		{"metrics with the token", guarded, "GET", "/metrics", "", "Bearer " + token, 200},
		{"any host with a token", guarded, "GET", "/bans", "petstore.example:9090", "Bearer " + token, 200},

		{"bans where no token is asked for", open, "GET", "/bans", "", "", 200},
		{"bans by the name localhost", open, "GET", "/bans", "LOCALHOST:9090", "", 200},
		{"bans by the IPv6 address", open, "GET", "/bans", "[::1]", "", 200},
		{"bans by a name that a browser was led here with", open, "GET", "/bans", "evil.example:9090", "", 421},
		{"health by such a name", open, "GET", "/healthz", "127.0.0.1.evil.example", "", 421},
		{"a profile", open, "GET", "/debug/pprof/goroutine?debug=1", "", "", 200},
		{"metrics", open, "GET", "/metrics", "", "", 200},
		{"nothing", open, "GET", "/nothing", "", "", 404},
		{"a method that is not there", open, "PUT", "/bans", "", "", 405},
		{"usage without a token", guarded, "GET", "/usage?owner=ada", "", "", 401},
		{"the console without a token", guarded, "GET", "/console/", "", "", 401},
		{"the console with the token", guarded, "GET", "/console/", "", "Bearer " + token, 200},
		{"the console with the token as a password", guarded, "GET", "/console/", "", "Basic " + base64.StdEncoding.EncodeToString([]byte("operator:"+token)), 200},
		{"the console with a wrong password", guarded, "GET", "/console/", "", "Basic b3BlcmF0b3I6d3Jvbmc=", 401},
		{"bans with the token as a password", guarded, "GET", "/bans", "", "Basic " + base64.StdEncoding.EncodeToString([]byte("operator:"+token)), 401},
		{"banning without a token", guarded, "POST", "/bans", "", "", 401},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := serve(tt.handler, tt.method, tt.path, local, "Host: "+tt.host, "Authorization: "+tt.authorization)
			if w.Code != tt.want {
				t.Errorf("%s %s: answered with %d, want %d\n%.300s", tt.method, tt.path, w.Code, tt.want, w.Body)
			}
			if strings.Contains(w.Body.String(), "API key") {
				t.Errorf("%s %s: the answer speaks of API keys: %s", tt.method, tt.path, w.Body)
			}
		})
	}
}

// The checks of HAProxy are of HTTP/1.0 and have no Host, and some use OPTIONS.
func TestHealthChecksWithoutHost(t *testing.T) {
	h := newHandler(t, nil)
	for request, want := range map[string]int{
		"GET /readyz HTTP/1.0":                    200,
		"GET /healthz HTTP/1.0":                   200,
		"OPTIONS /readyz HTTP/1.0":                200,
		"OPTIONS /healthz HTTP/1.0":               200,
		"GET http://evil.example/readyz HTTP/1.0": 421,
	} {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(request + "\r\n\r\n")))
		must(t, err)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: %d %s, want %d", request, w.Code, w.Body, want)
		}
	}
}

func TestReadiness(t *testing.T) {
	fine := admin.Check{Name: "fine", Run: func(context.Context) error { return nil }}
	broken := admin.Check{Name: "broken", Run: func(context.Context) error { return errors.New("it is broken") }}
	advisory := broken
	advisory.Advisory = true

	for _, tt := range []struct {
		name       string
		checks     []admin.Check
		token      string // that the server asks for
		wantStatus int
		wantBody   string
	}{
		{"no checks", nil, "", 200, `{"ready":true,"checks":{}}`},
		{"all is well", []admin.Check{fine}, "", 200, `{"ready":true,"checks":{"fine":"ok"}}`},
		{"a check fails", []admin.Check{broken, fine}, "", 503, `{"ready":false,"checks":{"broken":"it is broken","fine":"ok"}}`},
		{"an advisory check fails", []admin.Check{advisory, fine}, "", 200, `{"ready":true,"checks":{"broken":"it is broken","fine":"ok"}}`},
		{"strangers are told no details", []admin.Check{broken, fine}, token, 503, `{"ready":false,"checks":{"broken":"failing","fine":"ok"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := serve(newHandler(t, func(c *admin.Config) { c.Checks, c.Token = tt.checks, tt.token }), "GET", "/readyz", local)
			if diff := cmp.Diff([]any{tt.wantStatus, tt.wantBody + "\n"}, []any{w.Code, w.Body.String()}); diff != "" {
				t.Errorf("GET /readyz (-want +got):\n%s", diff)
			}
		})
	}

	h := newHandler(t, func(c *admin.Config) { c.Checks, c.Token = []admin.Check{broken}, token })
	if w := serve(h, "GET", "/readyz", local, withAuth); !strings.Contains(w.Body.String(), "it is broken") {
		t.Errorf("GET /readyz with the token = %s, want what is wrong", w.Body)
	}
}

func TestHealthLooksAtNothing(t *testing.T) {
	h := newHandler(t, func(c *admin.Config) {
		c.Checks = []admin.Check{{Name: "x", Run: func(context.Context) error {
			t.Error("GET /healthz ran a check")
			return nil
		}}}
	})
	if w := serve(h, "GET", "/healthz", local); w.Code != 200 || w.Body.String() != "ok\n" {
		t.Errorf("GET /healthz = %d %q, want 200 and ok", w.Code, w.Body)
	}
}

// A health check does not hang with the server.
func TestHealthOfAServerThatHangs(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // which accepts no connection
	must(t, err)
	defer l.Close()
	const want = "no response within 1.5s; the server may hang"
	if err := (admin.Client{Addr: l.Addr().String()}).Health(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Health = %v, want %q", err, want)
	}
}

// A browser asks its user for the token. It can open the console from a link on another page, but
// not load or frame it there.
func TestConsole(t *testing.T) {
	h := newHandler(t, withToken)
	if w := serve(h, "GET", "/", local); w.Code != 303 || w.Header().Get("Location") != "/console/" {
		t.Errorf("GET /: %d to %q, want 303 to the console", w.Code, w.Header().Get("Location"))
	}
	w := serve(h, "GET", "/console/", local)
	if got := w.Header().Get("WWW-Authenticate"); w.Code != 401 || !strings.HasPrefix(got, "Basic ") || strings.Contains(w.Body.String(), "<html") {
		t.Errorf("GET /console/ without the token: %d %q, want 401 that makes a browser ask for it", w.Code, got)
	}
	if w := serve(h, "GET", "/console/", local, "Authorization: Basic b3BlcmF0b3I6d3Jvbmc="); !strings.Contains(w.Body.String(), "The password is not the admin token.") {
		t.Errorf("GET /console/ with a wrong password: %d %s, want that it is wrong", w.Code, w.Body)
	}
	for _, tt := range []struct {
		path, dest string
		want       int
	}{
		{"/", "document", 303},
		{"/console/", "document", 200},
		{"/console/", "iframe", 403},
		{"/console/", "empty", 403},
		{"/console/console.js", "script", 403},
		{"/console/console.json", "document", 403},
		{"/bans", "document", 403},
		{"/debug/pprof/", "document", 403},
	} {
		if w := serve(h, "GET", tt.path, local, withAuth, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: "+tt.dest); w.Code != tt.want {
			t.Errorf("GET %s of another page as %s: %d, want %d", tt.path, tt.dest, w.Code, tt.want)
		}
	}
	for _, path := range []string{"/", "/console/", "/console/console.js"} {
		const text = "Without a token, the admin listener answers only requests for localhost and loopback addresses."
		if w := serve(newHandler(t, nil), "GET", path, local, "Host: evil.example:9090"); w.Code != 421 || !strings.Contains(w.Body.String(), text) {
			t.Errorf("GET %s by another name: %d %s, want 421 and %s", path, w.Code, w.Body, text)
		}
	}
}

// A ban that an operator ends on the console is in the log and in the audit log.
func TestUnbanOnTheConsole(t *testing.T) {
	var log bytes.Buffer
	var server *admin.Server
	h := newHandler(t, func(c *admin.Config) {
		c.Logger = slog.New(slog.NewJSONHandler(&log, nil))
		server = c.Server()
	})
	if w := serve(h, "POST", "/console/unban?subject=owner:ada", local); w.Code != 400 {
		t.Errorf("POST /console/unban without a form: %d, want 400", w.Code)
	}
	for _, want := range []int{303, 404} { // only the first one ends a ban
		if w := post(h, "/console/unban", "application/x-www-form-urlencoded", "subject=owner:ada"); w.Code != want {
			t.Errorf("POST /console/unban: %d %s, want %d", w.Code, w.Body, want)
		}
	}
	if got := serve(h, "GET", "/bans", local).Body.String(); strings.Contains(got, "ada") {
		t.Errorf("the bans are %s, want that of ada ended", got)
	}
	if e := audited(t, server)[0]; e.Action != store.BanEnd || e.Target != "owner:ada" || e.Actor != "admin" || e.From != "127.0.0.1" {
		t.Errorf("the audit log ends with %+v, want the end of the ban", e)
	}
	for _, want := range []string{`"subject":"owner:ada","outcome":"unbanned"`, `"subject":"owner:ada","outcome":"was not banned"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log is %s, want %s in it", &log, want)
		}
	}
}

// Whatever a client with the token sends, the server neither fails nor answers with
// something that is not JSON.
func FuzzRequests(f *testing.F) {
	for _, seed := range []struct{ method, target, body string }{
		{"POST", "/bans", `{"owner":"ada","seconds":60}`},
		{"POST", "/bans", `{"network":"2001:db8::/64","seconds":31622400}`},
		{"DELETE", "/bans?network=192.0.2.1", ``},
		{"GET", "/usage?owner=%00", ``},
		{"GET", "/console/console.json?last=%ff", ``},
		{"POST", "/console/unban?subject=owner:ada", ``},
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
