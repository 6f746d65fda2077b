package admin_test

import (
	"testing"
	"time"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/reference/internal/browsertest"
)

// The console works with what the endpoints answer, and not only with the test data of
// its own package.
func TestConsoleInBrowser(t *testing.T) {
	t.Parallel()
	s, engine := start(t, withToken)
	const owner = `Zoë & "sons" <z@example.com>?x=1#y`
	if err := engine.Ban(t.Context(), apikey.OwnerSubject(owner), time.Hour); err != nil {
		t.Fatal(err)
	}
	p := browsertest.Open(t, s.URL+"/")
	p.WaitText(t, "#login", "The server asks for its admin token")
	p.Type(t, "#token", token)
	p.Click(t, "#login button")
	for selector, pattern := range map[string]string{
		"#health":       `^ready$`,
		"#bans":         `Zoë & "sons" <z@example.com>\?x=1#y\s+in 59 min`,
		"#engine":       `in this process`,
		"#checks":       `settings\s+as at the start`,
		"#owners":       `No owner sent a request`,
		"#deprecations": `getPet|No operation is deprecated`,
		"#audit":        `key.create\s+key_`,
	} {
		p.WaitText(t, selector, pattern)
	}
	p.Click(t, "#bans tbody button")
	p.Click(t, "#confirm-yes")
	p.WaitText(t, "#done", "is no longer banned")
	p.WaitText(t, "#bans", "No client is banned")
	p.WaitText(t, "#audit", `ban.end\s+owner:Zoë[^$]*admin \(127.0.0.1\)`)
	if bans, err := engine.Bans(t.Context()); err != nil || len(bans) > 0 {
		t.Errorf("the engine has the bans %v (%v), want none", bans, err)
	}
}
