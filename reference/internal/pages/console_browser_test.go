//go:build long

package pages_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/admin"
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/keys"
	"github.com/animalstore/gatehouse/reference/internal/observe"
	"github.com/animalstore/gatehouse/reference/internal/pages"
)

const token = "a-token-that-is-long-enough"

// hostile is the name of an owner that tries to be HTML, to turn the text around it, and to
// look like another: a Hangul filler and a space at the end are not seen.
const hostile = "<img src=x onerror=alert(1)> \u202eada\u3164 "

// An adminAPI answers the calls of the page with what it holds.
type adminAPI struct {
	mu      sync.Mutex
	token   string         // "": none is needed
	answers map[string]any // by path; an int is a status without a body
	bans    []map[string]any
	calls   []string // that change something
	wrong   int      // requests with another token
}

func (a *adminAPI) set(path string, answer any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers[path] = answer
}

func (a *adminAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if sent := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "); a.token != "" && sent != a.token {
		message := "No admin token was sent."
		if sent != "" {
			a.wrong++
			message = "The admin token is not valid."
		}
		w.WriteHeader(http.StatusUnauthorized)
		json.NewEncoder(w).Encode(map[string]any{"code": "invalid_admin_token", "message": message, "status": 401})
		return
	}
	answer, ok := a.answers[r.URL.Path]
	switch status, isStatus := answer.(int); {
	case r.Method == http.MethodDelete:
		a.calls = append(a.calls, r.URL.RequestURI())
		a.bans = nil
		answer = map[string]any{"unbanned": true}
	case r.URL.Path == "/bans":
		answer = map[string]any{"bans": append([]map[string]any{}, a.bans...)}
	case isStatus:
		w.WriteHeader(status)
		answer = map[string]any{"code": "unavailable", "message": "The server is still starting. Try again later.", "status": status}
	case !ok:
		w.WriteHeader(http.StatusNotFound)
	}
	json.NewEncoder(w).Encode(answer)
}

type object = map[string]any

// busy returns an API of a server on which much happens.
func busy() *adminAPI {
	now := time.Now()
	return &adminAPI{
		bans: []object{
			{"owner": hostile, "ends": now.Add(30 * time.Minute), "level": 3, "reason": "strikes"},
			{"network": "2001:db8:1:2::/64", "ends": now.Add(50 * time.Second), "level": 1, "reason": "one page in a loop\u202e"},
		},
		answers: map[string]any{
			"/state": object{
				"build": object{"version": "v0.3.0"}, "started": now.Add(-49 * time.Hour), "uptime": 49 * 3600, "ready": true,
				"checks":      object{"database": "ok", "limits": "Redis does not answer; each server limits by itself", "log": "ok", "server": "ok"},
				"connections": object{"admin": object{"open": 2, "idle": 1, "refused": 0, "evicted": 0, "waited": 0}, "api": object{"open": 1210, "idle": 1200, "refused": 7, "evicted": 3, "waited": 1}},
				"settings":    object{"applied": 2, "refused": 1, "last": now.Add(-time.Minute), "error": "petstore.yaml:3:1: plans: must be a group"},
				"engine": object{
					"kind": "redis", "subjects": 812345, "capacity": 1000000, "evicted": 12, "refused": 0,
					"redis": object{"mode": "local", "circuit": "open", "fallbacks": 5123, "failures": 7, "timeouts": 3, "opened": 1, "pending": 310, "lost": 0},
				},
			},
			"/top": object{
				"seconds": 60, "decisions": object{"allowed": 18342, "limited": 211, "banned": 57, "undecided": 0}, "per_second": 312.4, "bans": 2,
				"owners": []object{
					{"owner": "ada", "allowed": 12000, "denied": 0}, {"owner": hostile, "allowed": 6100, "denied": 268},
					{"owner": "an-owner-with-a-very-long-name-" + strings.Repeat("x", 60), "allowed": 3, "denied": 0},
				},
				"networks": []object{{"network": "192.0.2.7/32", "allowed": 242, "denied": 0}, {"network": "2001:db8:1:2::/64", "allowed": 7, "denied": 57}},
			},
			"/deprecations": object{"deprecations": []object{
				{"operation": "getPet", "since": "2025-12-05T00:00:00Z", "sunset": "2030-12-05T00:00:00Z", "daysLeft": 1474, "owners": []object{
					{"owner": "ada", "requests": 120345, "last": now.Add(-time.Minute), "perDay": 1204.5},
					{"owner": hostile, "requests": 3, "last": now.Add(-30 * 24 * time.Hour), "perDay": 0},
				}},
				{"operation": "listOwners", "since": "2026-01-01T00:00:00Z", "owners": []object{}},
			}},
			"/audit": object{"entries": []object{
				{"id": 3, "at": now.Add(-time.Minute), "actor": "admin", "from": "127.0.0.1", "action": "ban.end", "target": "network:192.0.2.7/32"},
				{"id": 2, "at": now.Add(-time.Hour), "actor": "cli:ada@host", "action": "key.create", "target": "key_0123456789abcdef", "detail": "owner=\"" + hostile + "\" plan=pro"},
				{"id": 1, "at": now.Add(-48 * time.Hour), "actor": "cli:ada@host", "action": "key.revoke", "target": "key_fedcba9876543210", "detail": strings.Repeat("quotas=5000/minute,1000000/day ", 8) + "owner=bob"},
			}},
		},
	}
}

// open serves the page and the API, and opens the page.
func open(t *testing.T, api *adminAPI) (*browser, *httptest.Server) {
	t.Helper()
	files, err := pages.Console()
	must(t, err)
	mux := http.NewServeMux()
	mux.Handle("/", api)
	for _, f := range files {
		pattern := "GET " + f.Path
		if f.Path == "/" {
			pattern += "{$}"
		}
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", f.ContentType)
			w.Header().Set("Content-Security-Policy", pages.Policy)
			w.Write(f.Body)
		})
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return browse(t, server.URL+"/"), server
}

func TestConsoleShowsWhatHappens(t *testing.T) {
	t.Parallel()
	p, _ := open(t, busy())
	for selector, pattern := range map[string]string{
		"#server":       `v0.3.0 · up 2 d 1 h`,
		"#health":       `^ready$`,
		"#per-second":   `^312$`,
		"#totals":       `allowed\s+18,342\s+limited\s+211\s+banned\s+57\s+undecided\s+0`,
		"#owners":       `ada\s+12,000\s+0`,
		"#networks":     `2001:db8:1:2::/64\s+7\s+57`,
		"#engine":       `in Redis[^$]*open: Redis does not decide[^$]*each server limits by itself[^$]*812,345 of 1,000,000`,
		"#checks":       `Redis does not answer[^$]*1,210 open, 1,200 idle, 7 refused, 3 closed to make room, 1 waited[^$]*refused at [-0-9: ]+ \(UTC\): petstore.yaml:3:1`,
		"#deprecations": `getPet\s+ada\s+1,205\s+120,345\s+[-0-9: ]+\s+in 1,474 days[^$]*listOwners\s+not used so far\s+no date`,
		"#audit":        `ban.end\s+network:192.0.2.7/32\s+admin \(127.0.0.1\)`,
		"#bans":         `in (?:30|29) min[^$]*\tstrikes, level 3[^$]*2001:db8:1:2::/64 network\s+in [0-9]+ s\s+one page in a loop\\u\{202E\}`,
	} {
		p.waitText(t, selector, pattern)
	}
	for _, selector := range []string{"#owners", "#bans", "#deprecations", "#audit"} {
		p.waitText(t, selector, `<img src=x onerror=alert\(1\)> \\u\{202E\}ada\\u\{3164\}(?:\\u\{20\}| ")`)
	}
	if got := evaluate[int](t, p, `document.querySelectorAll("main img, main script").length`); got != 0 {
		t.Errorf("names have become %d elements, want text", got)
	}
	if got := evaluate[string](t, p, `document.querySelector("#chart svg").getAttribute("aria-label")`); !strings.Contains(got, "now 312") {
		t.Errorf("the chart is called %q, want the rate in it", got)
	}
	p.do(t, chromedp.EmulateViewport(1440, 900))
	if got := evaluate[int](t, p, `Math.max(...[...document.querySelectorAll("#audit td:not(:last-child) .name")].map((e) => e.getClientRects().length))`); got != 1 {
		t.Errorf("beside a long detail, an ID or an actor has %d lines, want 1", got)
	}
	p.screenshots(t, "console", "body")
	p.screenshots(t, "console-bans", "#bans")
	p.screenshots(t, "console-owners", "#owners")
	p.screenshots(t, "console-deprecations", "#deprecations")
	p.checkNames(t, 5)
}

// A ban is ended after a question, and only that one.
func TestConsoleUnbans(t *testing.T) {
	t.Parallel()
	api := busy()
	p, _ := open(t, api)
	p.waitText(t, "#bans", "in (?:30|29) min")
	p.click(t, "#bans tbody button")
	p.waitText(t, "#confirm", "the owner <img src=x")
	p.screenshots(t, "console-confirm", "body")
	p.checkNames(t, 3)
	p.click(t, "#confirm-no")
	api.mu.Lock()
	if len(api.calls) > 0 {
		t.Errorf("after Cancel the page has called %q, want nothing", api.calls)
	}
	api.mu.Unlock()
	p.click(t, "#bans tbody button")
	p.click(t, "#confirm-yes")
	p.waitText(t, "#done", "is no longer banned")
	p.waitText(t, "#bans", "No client is banned")
	api.mu.Lock()
	defer api.mu.Unlock()
	if want := "/bans?owner=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E%20%E2%80%AEada%E3%85%A4%20"; len(api.calls) != 1 || api.calls[0] != want {
		t.Errorf("the page has called %q, want %q once", api.calls, want)
	}
}

// The page asks for the token, sends a wrong one once, and does not keep it.
func TestConsoleAsksForTheToken(t *testing.T) {
	t.Parallel()
	api := busy()
	api.token = token
	p, _ := open(t, api)
	p.waitText(t, "#login", "The server asks for its admin token")
	p.screenshots(t, "console-login", "body")
	p.enter(t, "#token", "wrong")
	p.click(t, "#login button")
	p.waitText(t, "#login-error", "The admin token is not valid.")
	api.mu.Lock()
	if api.wrong != 1 {
		t.Errorf("the page has sent a wrong token %d times, want once", api.wrong)
	}
	api.mu.Unlock()
	p.enter(t, "#token", token)
	p.click(t, "#login button")
	p.waitText(t, "#owners", "ada")
	if got := evaluate[string](t, p, `location.href + document.documentElement.outerHTML + document.querySelector("#token").value`); strings.Contains(got, token) {
		t.Error("the token is in the page or in its address")
	}
	p.do(t, chromedp.Reload())
	p.waitText(t, "#login", "The server asks for its admin token")
}

// While the server starts, the page says so. When it goes away, the page says that, and
// it recovers by itself.
func TestConsoleSaysWhenTheServerIsAway(t *testing.T) {
	t.Parallel()
	api := busy()
	for _, path := range []string{"/top", "/audit", "/deprecations"} {
		api.answers[path] = http.StatusServiceUnavailable
	}
	api.set("/state", object{"build": object{"version": "v0.3.0"}, "uptime": 1, "ready": false, "checks": object{"server": "starting: loading usage"}})
	p, server := open(t, api)
	p.waitText(t, "#unready", "The server is not ready. server: starting: loading usage")
	p.waitText(t, "#decisions .error", "The server is still starting.")
	p.screenshots(t, "console-starting", "body")
	ready := busy()
	for _, path := range []string{"/state", "/top", "/audit", "/deprecations"} {
		api.set(path, ready.answers[path])
	}
	p.waitText(t, "#health", "^ready$")
	p.waitText(t, "#per-second", "312")
	for _, selector := range []string{"#decisions", "#audit", "#deprecations"} {
		if got := p.waitText(t, selector, "ada|312"); strings.Contains(got, "still starting") {
			t.Errorf("the page still says that the server starts: %s", got)
		}
	}

	server.Listener.Close()
	server.CloseClientConnections()
	p.waitText(t, "#away", "The server does not answer. It cannot be reached.")
	p.waitText(t, "#health", "^no answer$")
	p.screenshots(t, "console-away", "body")
}

// The console works with what the endpoints answer, and not only with the test data of
// the other tests.
func TestConsoleInBrowser(t *testing.T) {
	t.Parallel()
	engine, err := memory.New(memory.Options{})
	must(t, err)
	db := openStore(t)
	issue(t, db, time.Now, keys.New{Name: "test", Owner: "ada", Plan: "free"})
	running := &admin.Server{
		Limiter: engine, Activity: observe.NewActivity(time.Now), Store: db, Plan: config.Default().Plans.Of, DailyUse: db.ListDailyUse,
		Report: func() admin.Report { return admin.Report{Engine: admin.Engine{Kind: "memory"}} },
	}
	handler, err := admin.New(admin.Config{Server: func() *admin.Server { return running }, Token: token, Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	s := httptest.NewServer(handler)
	defer s.Close()
	const owner = `Zoë & "sons" <z@example.com>?x=1#y`
	must(t, engine.Ban(t.Context(), apikey.OwnerSubject(owner), time.Hour, ""))
	p := browse(t, s.URL+"/")
	p.waitText(t, "#login", "The server asks for its admin token")
	p.enter(t, "#token", token)
	p.click(t, "#login button")
	for selector, pattern := range map[string]string{
		"#health":       `^ready$`,
		"#bans":         `Zoë & "sons" <z@example.com>\?x=1#y\s+in 59 min`,
		"#engine":       `in this process`,
		"#checks":       `settings\s+as at the start`,
		"#owners":       `No owner sent a request`,
		"#deprecations": `getPet|No operation is deprecated`,
		"#audit":        `key.create\s+key_`,
	} {
		p.waitText(t, selector, pattern)
	}
	p.click(t, "#bans tbody button")
	p.click(t, "#confirm-yes")
	p.waitText(t, "#done", "is no longer banned")
	p.waitText(t, "#bans", "No client is banned")
	p.waitText(t, "#audit", `ban.end\s+owner:Zoë[^$]*admin \(127.0.0.1\)`)
	if bans, err := engine.Bans(t.Context()); err != nil || len(bans) > 0 {
		t.Errorf("the engine has the bans %v (%v), want none", bans, err)
	}
}
