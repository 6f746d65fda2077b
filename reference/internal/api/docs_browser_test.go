package api_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/animalstore/gatehouse/reference/internal/browsertest"
)

// now sets the clock of a service to the time of the machine, which the browser has too.
// It then stands still. In the last minutes of a day it is an hour ahead, so that the
// browser does not see the end of the day.
func now(s *service) {
	t := time.Now().UTC()
	if t.Day() != t.Add(10*time.Minute).Day() {
		t = t.Add(time.Hour)
	}
	s.clock.set(t)
}

func send(t *testing.T, p *browsertest.Page, operation, pattern string) string {
	t.Helper()
	p.Click(t, "#"+operation+" .send button:enabled") // not while a request is under way
	return p.WaitText(t, "#"+operation+" .answer", pattern)
}

// A reader sees the page, tries an operation with a key, and sees the limit.
func TestDocsInBrowser(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	now(s)
	s.pets(t, 3)
	p := browsertest.Open(t, "http://"+s.Addr+"/docs")
	p.WaitText(t, "h1", "Animal Store Service")
	p.Screenshots(t, "docs-top", "body")
	// With the keyboard, the form is near: a link leads to the first operation, and its form
	// comes before its responses.
	if got := browsertest.Evaluate[int](t, p, `[...document.querySelectorAll("#listPets :is(a[href], summary, input, select, button)")].findIndex((e) => e.matches(".send button"))`); got != 4 {
		t.Errorf("%d elements come before Send in the first operation, want 4: limit, status, cursor and the command", got)
	}
	if got := browsertest.Evaluate[string](t, p, `document.querySelectorAll(".skip")[1].hash`); got != "#listPets" {
		t.Errorf("the second link leads to %q, want the first operation", got)
	}

	send(t, p, "listPets", `401 Unauthorized[^$]*No API key was sent[^$]*Enter your API key`)
	p.Type(t, "#key", s.key(t, "reader", "enterprise", "5/day"))
	got := send(t, p, "listPets", `200 OK`)
	for _, want := range []string{
		"4 of 5 requests left", "resets in", "X-RateLimit-Limit\n5", "X-RateLimit-Remaining\n4", "X-RateLimit-Reset\n",
		`"name": "Duke"`, "content-type\napplication/json", "cache-control\nno-store",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the answer shows no %q:\n%s", want, got)
		}
	}
	p.WaitText(t, "#state", "^4 of 5 requests left · resets in")
	p.Screenshots(t, "docs-list", "#listPets .try")

	p.Type(t, "#listPets-limit", "1")
	send(t, p, "listPets", `3 of 5 requests left`)
	p.Click(t, "#listPets .answer button")
	if got := p.WaitText(t, "#listPets .answer", `2 of 5 requests left`); strings.Contains(got, `"id": 1,`) {
		t.Errorf("the next page begins with the first animal: %s", got)
	}
	send(t, p, "createPet", `201 Created[^$]*"categoryId": 3`)
	if got := send(t, p, "getPet", `200 OK`); !strings.Contains(got, "sunset\nThu, 05 Dec 2030 00:00:00 GMT") {
		t.Errorf("the answer shows no date of the removal: %s", got)
	}
	p.Screenshots(t, "docs-deprecated", "#getPet")

	p.Click(t, "#listPets .curl summary")
	p.Screenshots(t, "docs-curl", "#listPets .curl")
	p.Click(t, "#createPet .response:nth-of-type(2) summary")
	p.Screenshots(t, "docs-responses", "#createPet .response")
	p.Screenshots(t, "docs-rules", ".rules")
	p.Screenshots(t, "docs-codes", "#codes")
	p.Do(t, chromedp.EmulateViewport(360, 900))
	p.Click(t, "nav summary")
	p.Screenshots(t, "docs-chapters", "body")
	p.CheckNames(t, 60)

	if url := browsertest.Evaluate[string](t, p, "location.href"); strings.Contains(url, "?") {
		t.Errorf("the address of the page is %s, want it unchanged", url)
	}
}

// A reader that goes on after the limit sees what has happened, when to try again, and
// then that the client is banned.
func TestDocsExplainLimits(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	now(s)
	p := browsertest.Open(t, "http://"+s.Addr+"/docs#listPets")
	p.Type(t, "#key", s.key(t, "eager", "enterprise", "1/day"))
	send(t, p, "listPets", `0 of 1 request left`)
	for range 5 {
		send(t, p, "listPets", `429 Too Many Requests`)
	}
	got := p.WaitText(t, "#listPets .answer", `Limit reached`)
	for _, want := range []string{
		"You have reached the limit of 1 request per day.", "More than 10 further requests before then may get you banned.",
		"Try again in ", "The request was not charged.", "How bans work.", "Get the usage",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("at the limit, the answer shows no %q:\n%s", want, got)
		}
	}
	p.WaitText(t, "#state", `^Refused. Try again in`)
	p.Screenshots(t, "docs-limited", "#listPets .send")

	if err := s.limits.Ban(t.Context(), "owner:eager", time.Minute); err != nil {
		t.Fatal(err)
	}
	send(t, p, "listPets", `Temporarily banned[^$]*because it kept sending requests[^$]*Try again in [^$]*does not prolong it`)
	p.Screenshots(t, "docs-banned", "#listPets .send")
	send(t, p, "getUsage", `200 OK[^$]*"ban": \{`)
}

// What the reader types is sent as it is, and what the server answers is shown as it is: a
// number that JavaScript would round, a name that tries to be HTML, and no key in the
// command.
func TestDocsKeepWhatIsTyped(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	p := browsertest.Open(t, "http://"+s.Addr+"/docs#createPet")
	key := s.key(t, "careful", "pro")
	p.Type(t, "#key", key)
	p.Type(t, "#createPet-body", `{"name": "<b>Rex</b> 'x' \"y\" ]", "categoryId": -9223372036854775807}`)
	p.Type(t, "#createPet [data-in=header]", `"first"`)
	want := `"name": "<b>Rex</b> 'x' \\"y\\" \]",\s+"categoryId": -9223372036854775807,\s+"status"`
	send(t, p, "createPet", `201 Created[^$]*`+want)
	send(t, p, "createPet", `201 Created[^$]*`+want)
	if got := s.Get(t, "/v1/pets"); strings.Count(string(got.Data), `"id"`) != 1 {
		t.Errorf("the pets are %s, want the one of the Idempotency-Key", got.Data)
	}
	command := browsertest.Evaluate[string](t, p, `document.querySelector("#createPet .curl pre").textContent`)
	for _, part := range []string{`"Authorization: Bearer $PETSTORE_KEY"`, `-H 'Idempotency-Key: "first"'`, `'\''x'\''`, "'http://" + s.Addr + "/v1/pets'"} {
		if !strings.Contains(command, part) {
			t.Errorf("the command has no %s:\n%s", part, command)
		}
	}
	if strings.Contains(command, key) {
		t.Errorf("the command has the key: %s", command)
	}
	p.Type(t, "#key", "pet_live_\u00e9")
	p.Click(t, "#createPet .send button")
	p.WaitText(t, "#createPet .hint", "a character that no key has")
}

// When the time to wait is over, the page says so.
func TestDocsCountDown(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	now(s)
	p := browsertest.Open(t, "http://"+s.Addr+"/docs#listPets")
	p.Type(t, "#key", s.key(t, "patient", "enterprise", "1/2s"))
	send(t, p, "listPets", `0 of 1 request left`)
	send(t, p, "listPets", `Try again in [123] s|You can send requests again`)
	p.WaitText(t, "#listPets .answer", `You can send requests again.[^$]*the window has ended`)
	p.WaitText(t, "#state", `You can send requests again.`)
	s.clock.advance(2 * time.Second)
	send(t, p, "listPets", `200 OK`)
}

// Over HTTP/2, which has no phrases of statuses, the page is the same.
func TestDocsOverHTTP2(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	now(s)
	secure := httptest.NewUnstartedServer(s.handler)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	p := browsertest.Open(t, secure.URL+"/docs")
	if got := browsertest.Evaluate[string](t, p, `performance.getEntriesByType("navigation")[0].nextHopProtocol`); got != "h2" {
		t.Errorf("the page came by %q, want h2", got)
	}
	send(t, p, "listPets", `401 Unauthorized`)
	p.Type(t, "#key", s.Key)
	send(t, p, "listPets", `200 OK[^$]*requests left`)
}
