package admin_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
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
		Limiter: limiter, Console: ops, Store: db, Plan: plans.Of,
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
	basic := func(password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte("operator:"+password))
	}
	for _, tt := range []struct {
		handler       http.Handler
		method, path  string
		host          string
		authorization string
		want          int
	}{
		{guarded, "GET", "/healthz", "", "", 200},
		{guarded, "GET", "/readyz", "", "", 200},
		{guarded, "GET", "/bans", "", "", 401},
		{guarded, "POST", "/bans", "", "", 401},
		{guarded, "DELETE", "/bans?owner=ada", "", "", 401},
		{guarded, "GET", "/usage?owner=ada", "", "", 401},
		{guarded, "GET", "/deprecations", "", "", 401},
		{guarded, "GET", "/debug/pprof/", "", "", 401},
		{guarded, "GET", "/metrics", "", "", 401},
		{guarded, "GET", "/console/", "", "", 401},
		{guarded, "GET", "/bans", "", "Bearer " + token + "x", 401},
		{guarded, "GET", "/bans", "", "Bearer " + token[1:], 401},
		{guarded, "GET", "/bans", "", "Digest " + token, 401},
		{guarded, "GET", "/console/", "", basic("wrong"), 401},
		{guarded, "GET", "/bans", "", "bearer " + token, 200},
		{guarded, "GET", "/bans", "", basic(token), 200},
		{guarded, "GET", "/console/", "", basic(token), 200},
		{guarded, "GET", "/debug/pprof/", "", "Bearer " + token, 200},
		{guarded, "GET", "/metrics", "", "Bearer " + token, 200},
		{guarded, "GET", "/bans", "petstore.example:9090", "Bearer " + token, 200},

		{open, "GET", "/bans", "", "", 200},
		{open, "GET", "/bans", "LOCALHOST:9090", "", 200},
		{open, "GET", "/bans", "[::1]", "", 200},
		{open, "GET", "/bans", "[::ffff:127.0.0.1]", "", 200},
		{open, "GET", "/bans", "evil.example:9090", "", 421}, // a name that a browser was led here with
		{open, "GET", "/console/", "evil.example:9090", "", 421},
		{open, "GET", "/healthz", "127.0.0.1.evil.example", "", 421},
		{open, "GET", "/debug/pprof/goroutine?debug=1", "", "", 200},
		{open, "GET", "/metrics", "", "", 200},
		{open, "GET", "/", "", "", 303}, // to the console
		{open, "GET", "/nothing", "", "", 404},
		{open, "PUT", "/bans", "", "", 405},
	} {
		w := serve(tt.handler, tt.method, tt.path, "Host: "+tt.host, "Authorization: "+tt.authorization)
		if w.Code != tt.want {
			t.Errorf("%s %s of %q with %q: answered with %d, want %d\n%.300s", tt.method, tt.path, tt.host, tt.authorization, w.Code, tt.want, w.Body)
		}
		challenges := strings.Join(w.Header()["Www-Authenticate"], "; ") // with the first a browser asks its user
		asks := challenges == `Basic realm="petstore admin token", charset="UTF-8"; Bearer realm="petstore admin"`
		if asks != (tt.want == 401) || asks != strings.Contains(w.Body.String(), `"code":"invalid_admin_token","message":"The admin token is missing or wrong.`) {
			t.Errorf("%s %s with %q: %v %s, want that it asks for the token: %v", tt.method, tt.path, tt.authorization, w.Header(), w.Body, tt.want == 401)
		}
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
			w := serve(newHandler(t, func(c *admin.Config) { c.Checks, c.Token = tt.checks, tt.token }), "GET", "/readyz")
			if diff := cmp.Diff([]any{tt.wantStatus, tt.wantBody + "\n"}, []any{w.Code, w.Body.String()}); diff != "" {
				t.Errorf("GET /readyz (-want +got):\n%s", diff)
			}
		})
	}

	h := newHandler(t, func(c *admin.Config) { c.Checks, c.Token = []admin.Check{broken}, token })
	if w := serve(h, "GET", "/readyz", withAuth); !strings.Contains(w.Body.String(), "it is broken") {
		t.Errorf("GET /readyz with the token = %s, want what is wrong", w.Body)
	}
	if w := serve(h, "GET", "/healthz"); w.Code != 200 || w.Body.String() != "ok\n" {
		t.Errorf("GET /healthz = %d %q, want 200 and ok: it looks at no check", w.Code, w.Body)
	}
}

// A health check does not hang with the server.
func TestHealthOfAServerThatHangs(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // which accepts no connection
	must(t, err)
	defer l.Close()
	const want = "does not answer within 1.5s; the server may hang"
	if err := (admin.Client{Addr: l.Addr().String()}).Health(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Health = %v, want %q", err, want)
	}
}

// A browser can open the console from a link on another page, but not load or frame it there.
func TestLinksToTheConsole(t *testing.T) {
	h := newHandler(t, nil)
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
	} {
		if w := serve(h, "GET", tt.path, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Dest: "+tt.dest); w.Code != tt.want {
			t.Errorf("GET %s of another page as %s: %d, want %d", tt.path, tt.dest, w.Code, tt.want)
		}
	}
	if w := serve(h, "POST", "/console/", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Dest: document"); w.Code != 403 {
		t.Errorf("a form of another page that is sent to the console: %d, want 403", w.Code)
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
	for _, want := range []int{303, 404} { // only the first one ends a ban
		if w := post(h, "/console/unban", "application/x-www-form-urlencoded", "subject=owner:ada"); w.Code != want {
			t.Errorf("POST /console/unban: %d %s, want %d", w.Code, w.Body, want)
		}
	}
	if e := audited(t, server); len(e) != 1 || e[0].Action != store.BanEnd || e[0].Target != "owner:ada" || e[0].From != "127.0.0.1" {
		t.Errorf("the audit log has %+v, want the end of the ban", e)
	}
	for _, want := range []string{`"subject":"owner:ada","outcome":"unbanned"`, `"subject":"owner:ada","outcome":"was not banned"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log is %s, want %s in it", &log, want)
		}
	}
}
