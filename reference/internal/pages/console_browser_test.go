//go:build long

package pages_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/animalstore/gatehouse/middleware/console"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/admin"
)

// strange is the name of a client that tries to be HTML, to turn the text around it, and to
// look like another: a Hangul filler and a space at the end are not seen. A form changes the line
// end, and the byte that is not UTF-8.
const strange = "user:<img src=x onerror=alert(1)> \u202eada\u3164\n\xff "

// operate serves the console of a busy service, and opens it by a name, without TLS: then the
// browser does not send Sec-Fetch-Site.
func operate(t *testing.T) (*browser, *console.Console, *memory.Limiter, *httptest.Server) {
	t.Helper()
	now := time.Date(2026, time.December, 1, 12, 0, 30, 0, time.UTC)
	engine, err := memory.New(memory.Options{Now: func() time.Time { return now }}) // so that no window ends meanwhile
	must(t, err)
	ops, err := console.New(engine, console.Options{
		Title: "petstore",
		Facts: func(context.Context) map[string]any {
			return map[string]any{"version": "v0.3.0", "connections": 1210, "note": strings.Repeat("long ", 40)}
		},
		Deprecations: func(context.Context) ([]console.Deprecation, error) {
			return []console.Deprecation{
				{Operation: "getPet", Since: now.Add(-time.Hour), Sunset: time.Date(2030, time.December, 5, 0, 0, 0, 0, time.UTC), Successor: "/v1/pets?status=available"},
				{Operation: "listOwners"},
			}, nil
		},
	})
	must(t, err)
	plan := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerHour(60), ratelimit.PerMonth(1_000_000))
	send := func(subject string, times int) {
		for range times {
			d, err := engine.Take(t.Context(), subject, plan, 1)
			ops.Observe(nil, ratelimit.Caller{Subject: subject, Plan: plan}, d, err)
		}
	}
	send("user:ann", 2000)
	send(strange, 50)
	send("user:an-owner-with-a-very-long-name-"+strings.Repeat("x", 60), 3)
	for i := range 30 {
		send(fmt.Sprintf("network:2001:db8:%x:2::/64", i), i+1)
	}
	must(t, engine.Ban(t.Context(), strange, time.Hour, "one page in a loop\u202e"))
	must(t, engine.Ban(t.Context(), "network:192.0.2.7/32", 30*time.Minute, ""))
	ops.DeprecatedUse("getPet", "user:ann")
	ops.DeprecatedUse("getPet", strange)
	server := httptest.NewServer(ops)
	t.Cleanup(server.Close)
	return browse(t, strings.Replace(server.URL, "127.0.0.1", "ops.test", 1)+"/?last=day"), ops, engine, server
}

func TestOperatorsSeeTopConsumers(t *testing.T) {
	t.Parallel()
	p, _, _, _ := operate(t)
	for selector, pattern := range map[string]string{
		"section:has(#decisions)":    `allowed\s+[0-9]`,
		"section:has(#busiest)":      `user:ann limited\s+free\s+60\s+1,940\s+60 of 60/hour[^$]*60 of 1000000/month`,
		"section:has(#engine-0)":     `bound\s+[0-9,]+\s+evicted\s+0`,
		"section:has(#facts)":        `version\s+v0.3.0`,
		"section:has(#deprecations)": `getPet[^$]*/v1/pets\?status=available[^$]*user:ann\s+1[^$]*listOwners\s+No date of removal`,
		"section:has(#bans)":         `one page in a loop\\u\{202E\}[^$]*network:192.0.2.7/32\s+[0-9]+m[0-9]+s\s+by hand`,
	} {
		p.waitText(t, selector, pattern)
	}
	for _, id := range []string{"busiest", "deprecations", "bans"} {
		p.waitText(t, "section:has(#"+id+")", `<img src=x onerror=alert\(1\)> \\u\{202E\}ada\\u\{3164\}\\u\{A\}.\\u\{20\}`)
	}
	if got := evaluate[int](t, p, `document.querySelectorAll("main img, main script").length`); got != 0 {
		t.Errorf("names have become %d elements, want text", got)
	}
	p.look(t, "console")
	p.checkNames(t, 10)
	p.click(t, "nav a")
	p.do(t, chromedp.WaitVisible(chromedp.CSS(`nav a[href="./?last=day"]`)))
}

// An operator ends a ban with the keyboard alone, and the page renews itself meanwhile without
// taking the focus away.
func TestOperatorsUnbanByKeyboard(t *testing.T) {
	t.Parallel()
	p, ops, engine, _ := operate(t)
	p.waitText(t, "#bans", "2")
	evaluate[bool](t, p, `(document.querySelector("summary").focus(), true)`)
	p.do(t, chromedp.KeyEvent(kb.Enter))
	p.do(t, chromedp.KeyEvent(kb.Tab))
	ops.DeprecatedUse("getPet", "user:new")
	p.waitText(t, "section:has(#deprecations)", "user:new")
	if got := evaluate[string](t, p, `document.activeElement.innerText`); !strings.HasPrefix(got, "Unban user:<img") {
		t.Errorf("after the page has renewed itself, the focus is on %q, want on the button", got)
	}
	p.look(t, "console-unban")
	p.checkNames(t, 10)
	p.do(t, chromedp.KeyEvent(kb.Enter))
	p.do(t, chromedp.WaitVisible(chromedp.CSS("section:has(#bans) tbody tr:only-child")))
	if bans, err := engine.Bans(t.Context()); err != nil || len(bans) != 1 || bans[0].Subject == strange {
		t.Errorf("the engine has the bans %v (%v), want the other one", bans, err)
	}
}

func TestOperatorsSeeThatTheServiceIsAway(t *testing.T) {
	t.Parallel()
	p, _, _, server := operate(t)
	p.waitText(t, "#busiest", "last day")
	server.Listener.Close()
	server.CloseClientConnections()
	p.waitText(t, "#away", "The service does not answer. This is the state of [0-9:]+")
	p.look(t, "console-away")
}

// The admin listener of the server serves the console. A browser sends its token as a password.
func TestConsoleOfTheServer(t *testing.T) {
	t.Parallel()
	engine, err := memory.New(memory.Options{})
	must(t, err)
	ops, err := console.New(engine, console.Options{Title: "petstore"})
	must(t, err)
	running := &admin.Server{Limiter: engine, Console: ops, Store: openStore(t)}
	const token = "a-token-that-is-long-enough"
	handler, err := admin.New(admin.Config{Server: func() *admin.Server { return running }, Token: token, Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	s := httptest.NewServer(handler)
	defer s.Close()
	must(t, engine.Ban(t.Context(), "owner:ada", time.Hour, ""))
	p := browse(t, strings.Replace(s.URL, "://", "://operator:"+token+"@", 1)+"/")
	p.waitText(t, "#bans", "1")
	must(t, engine.Ban(t.Context(), "owner:bob", 2*time.Hour, ""))
	p.waitText(t, "section:has(#bans)", "owner:bob")
	p.click(t, "summary")
	p.click(t, "details button")
	p.do(t, chromedp.WaitVisible(chromedp.CSS("section:has(#bans) tbody tr:only-child")))
}
