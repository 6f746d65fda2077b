//go:build long

package pages_test

import (
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// A service is the API with its page, over HTTP/2, which has no phrases of statuses.
type service struct {
	*httptest.Server
	db     *sqlite.Store
	limits *memory.Limiter
	now    atomic.Int64 // Unix time, which stands still
}

// start serves three pets, at first at the time of the machine, which the browser has too.
// In the last minutes of a day it is an hour ahead, so that the browser does not see the
// end of the day.
func start(t *testing.T) *service {
	t.Helper()
	s := new(service)
	now := time.Now().UTC()
	if now.Day() != now.Add(10*time.Minute).Day() {
		now = now.Add(time.Hour)
	}
	s.now.Store(now.Unix())
	s.db = openStore(t)
	for range 3 {
		_, err := s.db.CreatePet(t.Context(), store.NewPet{Name: "Duke", CategoryID: 1, Status: store.Available})
		must(t, err)
	}
	var err error
	s.limits, err = memory.New(memory.Options{Now: s.clock})
	must(t, err)
	defaults := config.Default()
	defaults.Anonymous = ratelimit.MustPlan("anonymous", ratelimit.Penalty{}, ratelimit.PerMinute(1000))
	handler, err := api.New(api.Config{
		Config: defaults, Pets: s.db, Keys: s.db, Limiter: s.limits, Plan: defaults.Plans.Of,
		Logger: slog.New(slog.DiscardHandler), Now: s.clock,
	})
	must(t, err)
	s.Server = httptest.NewUnstartedServer(handler)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func openStore(t *testing.T) *sqlite.Store {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "petstore.db"), sqlite.Options{})
	must(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

func (s *service) clock() time.Time { return time.Unix(s.now.Load(), 0) }

func (s *service) key(t *testing.T, owner, plan string, quotas ...string) string {
	secret, err := api.NewKey()
	must(t, err)
	_, err = s.db.CreateKey(t.Context(), store.NewKey{
		Digest: secret.Digest(), LastFour: secret.LastFour(),
		Name: "test", Owner: owner, Plan: plan, Quotas: quotas, Created: s.clock(),
	}, store.Actor{Name: "test"})
	must(t, err)
	return secret.Reveal()
}

func send(t *testing.T, p *browser, operation, pattern string) string {
	t.Helper()
	p.click(t, "#"+operation+" .send button:enabled") // not while a request is under way
	return p.waitText(t, "#"+operation+" .answer", pattern)
}

// A reader sees the page, tries an operation with a key, and sees the limit.
func TestDocsInBrowser(t *testing.T) {
	t.Parallel()
	s := start(t)
	p := browse(t, s.URL+"/docs")
	p.waitText(t, "h1", "Animal Store Service")
	if got := evaluate[string](t, p, `performance.getEntriesByType("navigation")[0].nextHopProtocol`); got != "h2" {
		t.Errorf("the page came by %q, want h2", got)
	}
	p.look(t, "docs-top")
	// With the keyboard, the form is near: a link leads to the first operation, and its form
	// comes before its responses.
	if got := evaluate[int](t, p, `[...document.querySelectorAll("#listPets :is(a[href], summary, input, select, button)")].findIndex((e) => e.matches(".send button"))`); got != 4 {
		t.Errorf("%d elements come before Send in the first operation, want 4: limit, status, cursor and the command", got)
	}
	if got := evaluate[string](t, p, `document.querySelectorAll(".skip")[1].hash`); got != "#listPets" {
		t.Errorf("the second link leads to %q, want the first operation", got)
	}

	send(t, p, "listPets", `401 Unauthorized[^$]*No API key was sent[^$]*Enter your API key`)
	p.enter(t, "#key", s.key(t, "reader", "enterprise", "5/day"))
	got := send(t, p, "listPets", `200 OK`)
	for _, want := range []string{
		"4 of 5 requests left", "resets in", "X-RateLimit-Limit\n5", "X-RateLimit-Remaining\n4", "X-RateLimit-Reset\n",
		`"name": "Duke"`, "content-type\napplication/json", "cache-control\nno-store",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the answer shows no %q:\n%s", want, got)
		}
	}
	p.waitText(t, "#state", "^4 of 5 requests left · resets in")
	p.look(t, "docs-list")

	p.enter(t, "#listPets-limit", "1")
	send(t, p, "listPets", `3 of 5 requests left`)
	p.click(t, "#listPets .answer button")
	if got := p.waitText(t, "#listPets .answer", `2 of 5 requests left`); strings.Contains(got, `"id": 1,`) {
		t.Errorf("the next page begins with the first animal: %s", got)
	}
	send(t, p, "createPet", `201 Created[^$]*"categoryId": 3`)
	if got := send(t, p, "getPet", `200 OK`); !strings.Contains(got, "sunset\nThu, 05 Dec 2030 00:00:00 GMT") {
		t.Errorf("the answer shows no date of the removal: %s", got)
	}
	p.look(t, "docs-deprecated")

	p.click(t, "#listPets .curl summary")
	p.click(t, "#createPet .response:nth-of-type(2) summary")
	p.look(t, "docs-responses")
	p.do(t, chromedp.EmulateViewport(360, 900))
	p.click(t, "nav summary")
	p.look(t, "docs-chapters")
	p.checkNames(t, 60)

	if url := evaluate[string](t, p, "location.href"); strings.Contains(url, "?") {
		t.Errorf("the address of the page is %s, want it unchanged", url)
	}
}

// A reader that goes on after the limit sees what has happened, when to try again, and
// then that the client is banned.
func TestDocsExplainLimits(t *testing.T) {
	t.Parallel()
	s := start(t)
	p := browse(t, s.URL+"/docs#listPets")
	p.enter(t, "#key", s.key(t, "eager", "enterprise", "1/day"))
	send(t, p, "listPets", `0 of 1 request left`)
	for range 5 {
		send(t, p, "listPets", `429 Too Many Requests`)
	}
	got := p.waitText(t, "#listPets .answer", `Limit reached`)
	for _, want := range []string{
		"You have reached the limit of 1 request per day.", "More than 10 further requests before then may get you banned.",
		"Try again in ", "The request was not charged.", "How bans work.", "Get the usage",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("at the limit, the answer shows no %q:\n%s", want, got)
		}
	}
	p.waitText(t, "#state", `^Refused. Try again in`)
	p.look(t, "docs-limited")

	must(t, s.limits.Ban(t.Context(), "owner:eager", time.Minute, "strikes"))
	send(t, p, "listPets", `Temporarily banned[^$]*because it kept sending requests[^$]*Try again in [^$]*does not prolong it`)
	p.look(t, "docs-banned")
	send(t, p, "getUsage", `200 OK[^$]*"ban": \{`)
}

// What the reader types is sent as it is, and what the server answers is shown as it is: a
// number that JavaScript would round, a name that tries to be HTML, and no key in the
// command.
func TestDocsKeepWhatIsTyped(t *testing.T) {
	t.Parallel()
	s := start(t)
	p := browse(t, s.URL+"/docs#createPet")
	key := s.key(t, "careful", "pro")
	p.enter(t, "#key", key)
	p.enter(t, "#createPet-body", `{"name": "<b>Rex</b> 'x' \"y\" ]", "categoryId": -9223372036854775807}`)
	p.enter(t, "#createPet [data-in=header]", `"first"`)
	want := `"name": "<b>Rex</b> 'x' \\"y\\" \]",\s+"categoryId": -9223372036854775807,\s+"status"`
	send(t, p, "createPet", `201 Created[^$]*`+want)
	send(t, p, "createPet", `201 Created[^$]*`+want)
	if pets, _, err := s.db.ListPets(t.Context(), store.ListQuery{Limit: 20}); err != nil || len(pets) != 4 {
		t.Errorf("there are the pets %v (%v), want one more by the Idempotency-Key", pets, err)
	}
	command := evaluate[string](t, p, `document.querySelector("#createPet .curl pre").textContent`)
	for _, part := range []string{`"Authorization: Bearer $PETSTORE_KEY"`, `-H 'Idempotency-Key: "first"'`, `'\''x'\''`, "'" + s.URL + "/v1/pets'"} {
		if !strings.Contains(command, part) {
			t.Errorf("the command has no %s:\n%s", part, command)
		}
	}
	if strings.Contains(command, key) {
		t.Errorf("the command has the key: %s", command)
	}
	p.enter(t, "#key", "pet_live_\u00e9")
	p.click(t, "#createPet .send button")
	p.waitText(t, "#createPet .hint", "a character that no key has")
}

// When the time to wait is over, the page says so.
func TestDocsCountDown(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.now.Store(time.Now().Unix()) // in the last minutes of a day too, so that the browser sees the end
	p := browse(t, s.URL+"/docs#listPets")
	p.enter(t, "#key", s.key(t, "patient", "enterprise", "1/2s"))
	send(t, p, "listPets", `0 of 1 request left`)
	send(t, p, "listPets", `Try again in [123] s|You can send requests again`)
	p.waitText(t, "#listPets .answer", `You can send requests again.[^$]*the window has ended`)
	p.waitText(t, "#state", `You can send requests again.`)
	s.now.Add(2)
	send(t, p, "listPets", `200 OK`)
}
