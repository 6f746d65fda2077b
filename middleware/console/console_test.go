package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/console"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

var free = ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60), ratelimit.PerDay(1000))

// A report is a part of the JSON.
type report struct {
	Title              string
	Decisions          map[string]int64
	PerSecond          float64
	Seconds            []int64
	Subjects, Networks []subject
	Bans               *struct {
		Error string
		Total int
		List  []struct {
			Subject, Reason, Unban string
			Ends                   time.Time
		}
	}
	Engines []struct {
		Engine string
		Away   bool
		Facts  map[string]any
	}
	Facts        map[string]any
	Deprecations *struct {
		Error string
		List  []console.Deprecation
	}
}

type subject struct {
	Subject, Plan   string
	Allowed, Denied int64
	Outcome         string
	Quotas          []struct {
		Quota      string
		Used, Most int64
	}
}

func newConsole(t *testing.T, l ratelimit.Limiter, opts console.Options) *console.Console {
	t.Helper()
	c := testcheck.Must(console.New(l, opts))
	return c
}

func get(h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w
}

func reportOf(t *testing.T, c *console.Console, query string) (r report) {
	t.Helper()
	w := get(c, "/console.json"+query)
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil || w.Code != 200 {
		t.Fatalf("GET /console.json%s: %d %v: %s", query, w.Code, err, w.Body)
	}
	return r
}

// send sends requests of a subject that the engine decides and the console observes.
func send(t *testing.T, c *console.Console, l ratelimit.Limiter, subject string, times int) {
	t.Helper()
	for range times {
		d, err := l.Take(t.Context(), subject, free, 1)
		c.Observe(nil, ratelimit.Caller{Subject: subject, Plan: free}, d, err)
	}
}

func TestBusiest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := testcheck.Must(memory.New(memory.Options{}))
		c := newConsole(t, l, console.Options{})
		send(t, c, l, "user:bob", 5)
		send(t, c, l, "user:ann", 62)
		send(t, c, l, "network:192.0.2.7/32", 3)
		send(t, c, l, "search/network:192.0.2.8/32", 2)
		send(t, c, l, "user:network:1", 1)
		names := func(list []subject) (names []string) {
			for _, s := range list {
				names = append(names, fmt.Sprint(s.Subject, " ", s.Allowed, "+", s.Denied))
			}
			return names
		}
		for _, query := range []string{"", "?last=minute", "?last=day"} {
			r := reportOf(t, c, query)
			if diff := cmp.Diff([]string{"user:ann 60+2", "user:bob 5+0", "user:network:1 1+0"}, names(r.Subjects)); diff != "" {
				t.Errorf("%s: subjects (-want +got):\n%s", query, diff)
			}
			if diff := cmp.Diff([]string{"network:192.0.2.7/32 3+0", "search/network:192.0.2.8/32 2+0"}, names(r.Networks)); diff != "" {
				t.Errorf("%s: networks (-want +got):\n%s", query, diff)
			}
		}
		if r := reportOf(t, c, ""); fmt.Sprint(r.Networks[0].Quotas) != "[{60/minute 3 60} {1000/day 3 1000}]" {
			t.Errorf("the first network is %+v, want what it has used of both quotas", r.Networks[0])
		}
		ann := reportOf(t, c, "").Subjects[0]
		if ann.Plan != "free" || ann.Outcome != "limited" || fmt.Sprint(ann.Quotas) != "[{60/minute 60 60} {1000/day 60 1000}]" {
			t.Errorf("ann is %+v, want what she has used of both quotas", ann)
		}

		time.Sleep(2 * time.Minute)
		send(t, c, l, "user:bob", 70)
		if r := reportOf(t, c, ""); r.Networks == nil || len(r.Networks) != 0 {
			t.Errorf("without requests of networks they are %#v in JSON, want []", r.Networks)
		}
		if got := names(reportOf(t, c, "").Subjects); !slices.Equal(got, []string{"user:bob 60+10"}) {
			t.Errorf("two minutes later the minute has %q, want bob alone", got)
		}
		for _, wait := range []time.Duration{22 * time.Hour, 2 * time.Hour} {
			if got := names(reportOf(t, c, "?last=day").Subjects); len(got) < 2 || !slices.Equal(got[:2], []string{"user:bob 65+10", "user:ann 60+2"}) {
				t.Errorf("two minutes and 22 hours later the day has %q, want bob before ann", got)
			}
			time.Sleep(wait)
		}
		if r := reportOf(t, c, "?last=day"); len(r.Subjects)+len(r.Networks) > 0 {
			t.Errorf("a day later the day has %v, want nothing", r.Subjects)
		}
	})
}

func TestDecisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := testcheck.Must(memory.New(memory.Options{}))
		c := newConsole(t, l, console.Options{})
		caller := ratelimit.Caller{Subject: "user:ann", Plan: free}
		for range 10 {
			for _, o := range []ratelimit.Outcome{ratelimit.Allowed, ratelimit.Allowed, ratelimit.Limited, ratelimit.Banned, ratelimit.Suspended, 77} {
				c.Observe(nil, caller, ratelimit.Decision{Outcome: o, Time: time.Now().UnixNano()}, nil)
			}
			c.Observe(nil, caller, ratelimit.Decision{Outcome: ratelimit.Allowed}, errors.New("no answer"))
			c.Observe(nil, ratelimit.Caller{Subject: "user:ann"}, ratelimit.Decision{Outcome: ratelimit.Allowed}, nil)
			time.Sleep(time.Second)
		}
		r := reportOf(t, c, "")
		want := map[string]int64{"allowed": 20, "limited": 10, "banned": 10, "suspended": 10, "undecided": 30}
		if diff := cmp.Diff(want, r.Decisions); diff != "" {
			t.Errorf("decisions (-want +got):\n%s", diff)
		}
		if r.PerSecond != 8 || len(r.Seconds) != 60 || r.Seconds[58] != 8 || r.Seconds[48] != 0 || r.Seconds[59] != 0 {
			t.Errorf("%v a second of %v, want 8 in each of ten", r.PerSecond, r.Seconds)
		}
		time.Sleep(55 * time.Second)
		if got := reportOf(t, c, "").Decisions["allowed"]; got != 8 {
			t.Errorf("%d are allowed after 65 seconds, want the last 8", got)
		}
	})
}

// What is older than the last minute and the last day is forgotten, while a client goes on.
func TestTimePasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := testcheck.Must(memory.New(memory.Options{}))
		c := newConsole(t, l, console.Options{})
		for range 150 {
			send(t, c, l, "user:ann", 1)
			send(t, c, l, "network:192.0.2.7/32", 1)
			time.Sleep(time.Second)
		}
		r := reportOf(t, c, "")
		if got := r.Decisions["allowed"] + r.Decisions["limited"]; got != 118 { // the present second has none yet
			t.Errorf("%d decisions in the last minute, want 118", got)
		}
		for _, s := range slices.Concat(r.Subjects, r.Networks) {
			if n := s.Allowed + s.Denied; n < 50 || n > 60 {
				t.Errorf("%s has sent %d requests in the last minute, want 50 to 60", s.Subject, n)
			}
		}
	})
}

// The clock of an engine, as that of Redis, may be another one.
func TestClockOfTheEngine(t *testing.T) {
	for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			l := testcheck.Must(memory.New(memory.Options{Now: func() time.Time { return time.Now().Add(ahead) }}))
			c := newConsole(t, l, console.Options{})
			send(t, c, l, "user:ann", 3)
			time.Sleep(30 * time.Second)
			if r := reportOf(t, c, ""); r.Decisions["allowed"] != 3 || len(r.Subjects) != 1 {
				t.Errorf("ahead by %v: %v %v, want ann", ahead, r.Decisions, r.Subjects)
			}
			time.Sleep(time.Minute)
			if r := reportOf(t, c, ""); r.Decisions["allowed"] != 0 || len(r.Subjects) != 0 {
				t.Errorf("ahead by %v: %v %v, want nothing a minute later", ahead, r.Decisions, r.Subjects)
			}
			for _, other := range []time.Duration{10 * time.Second, 0} { // another engine, as while Redis is down
				d := ratelimit.Decision{Outcome: ratelimit.Allowed, Time: time.Now().Add(ahead + other).UnixNano()}
				c.Observe(nil, ratelimit.Caller{Subject: "user:ann", Plan: free}, d, nil)
			}
			if r := reportOf(t, c, ""); r.Decisions["allowed"] != 1 {
				t.Errorf("ahead by %v: %v, want the decision that is not in the future", ahead, r.Decisions)
			}
		})
	}
}

// A flood of new subjects neither hides a busy one nor takes memory, and no count is too high.
func TestFlood(t *testing.T) {
	c := newConsole(t, testcheck.Must(memory.New(memory.Options{})), console.Options{})
	d := ratelimit.Decision{Outcome: ratelimit.Allowed, Time: time.Now().UnixNano()}
	const flood = 100_000
	for i := range flood { // first, all places are taken
		c.Observe(nil, ratelimit.Caller{Subject: fmt.Sprint("early:", i/100), Plan: free}, d, nil)
	}
	for i := range flood {
		c.Observe(nil, ratelimit.Caller{Subject: fmt.Sprint("user:", i), Plan: free}, d, nil)
		if i%50 == 0 {
			c.Observe(nil, ratelimit.Caller{Subject: "user:busy", Plan: free}, d, nil)
		}
	}
	r := reportOf(t, c, "?last=day")
	if busy := r.Subjects[0]; busy.Subject != "user:busy" || busy.Allowed > flood/50 || busy.Allowed < flood/50-flood/100 {
		t.Errorf("the busiest is %+v, want user:busy with about %d", busy, flood/50)
	}
	for _, s := range r.Subjects[1:] {
		if s.Allowed > 100 || !strings.HasPrefix(s.Subject, "early:") && s.Allowed > 1 {
			t.Errorf("%s has %d requests, want no more than it has sent", s.Subject, s.Allowed)
		}
	}
}

// A smooth quota counts what can be used at once.
func TestSmoothQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := testcheck.Must(memory.New(memory.Options{}))
		c := newConsole(t, l, console.Options{})
		plan := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerMinute(60).Smooth(10))
		d, err := l.Take(t.Context(), "user:ann", plan, 3)
		c.Observe(nil, ratelimit.Caller{Subject: "user:ann", Plan: plan}, d, err)
		if got := fmt.Sprint(reportOf(t, c, "").Subjects[0].Quotas); got != "[{60/minute smooth 10 3 10}]" {
			t.Errorf("the quotas are %s, want 3 used of 10", got)
		}
	})
}

// An engine written elsewhere, with numbers.
type numbered struct{ ratelimit.Limiter }

type stats struct{ Calls, secret int }

func (numbered) Stats() stats { return stats{17, 4} }

func TestNumbersOfAnyEngine(t *testing.T) {
	r := reportOf(t, newConsole(t, numbered{testcheck.Must(memory.New(memory.Options{}))}, console.Options{}), "")
	if len(r.Engines) != 1 || r.Engines[0].Engine != "console_test" || fmt.Sprint(r.Engines[0].Facts) != "map[calls:17]" {
		t.Errorf("the engines are %+v, want the exported number", r.Engines)
	}
}

// An engine that can only decide.
type plain struct{ ratelimit.Limiter }

// An engine with a store that does not answer.
type failing struct {
	engine.Peeker
	ratelimit.Limiter
	engine.Banner
	peeks int
}

func (*failing) Bans(ctx context.Context) ([]engine.Ban, error) {
	<-ctx.Done()
	return nil, errors.New("no answer")
}
func (*failing) Unban(context.Context, string) (bool, error) { return false, errors.New("no answer") }
func (f *failing) Peek(ctx context.Context, _ string, _ *ratelimit.Plan) (d ratelimit.Decision, err error) {
	f.peeks++
	<-ctx.Done()
	return d, errors.New("no answer")
}

func TestWhatAnEngineCannotDoIsNotShown(t *testing.T) {
	l := testcheck.Must(memory.New(memory.Options{}))
	c := newConsole(t, plain{l}, console.Options{Facts: func(context.Context) map[string]any { return nil }})
	send(t, c, l, "user:ann", 1)
	r := reportOf(t, c, "")
	if r.Bans != nil || len(r.Engines) > 0 || r.Facts == nil || len(r.Facts) > 0 || r.Deprecations != nil || len(r.Subjects) != 1 || r.Subjects[0].Quotas != nil {
		t.Errorf("the report is %+v, want only what was decided", r)
	}
	body := get(c, "/").Body.String()
	for _, text := range []string{"Bans", "Unban", "Engine:", "Deprecated"} {
		if strings.Contains(body, text) {
			t.Errorf("the page has %q", text)
		}
	}
	if w := post(c, "", url.Values{"subject": {"user:ann"}}, nil); w.Code != 404 && w.Code != 405 {
		t.Errorf("POST /unban: %d, want that there is none", w.Code)
	}
}

func TestAnEngineThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := testcheck.Must(memory.New(memory.Options{}))
		f := &failing{Limiter: l}
		c := newConsole(t, f, console.Options{
			Deprecations: func(context.Context) ([]console.Deprecation, error) { return nil, errors.New("database is locked") },
		})
		send(t, c, l, "user:ann", 1)
		send(t, c, l, "network:192.0.2.7/32", 1)
		start := time.Now()
		r := reportOf(t, c, "")
		if r.Bans.Error != "The bans cannot be listed: no answer" || len(r.Subjects) != 1 || r.Deprecations.Error == "" {
			t.Errorf("the report is %+v, want the errors", r)
		}
		if took := time.Since(start); took != time.Second || f.peeks != 1 {
			t.Errorf("the report took %v, and the engine was asked for %d subjects, want 1s, and nothing after an error", took, f.peeks)
		}
		if body := get(c, "/").Body.String(); !strings.Contains(body, "cannot be listed: no answer") || !strings.Contains(body, "cannot be listed: database is locked") {
			t.Errorf("the page does not say what cannot be listed: %s", body)
		}
		if w := post(c, "", url.Values{"subject": {"user:\u202e"}}, nil); w.Code != 503 || !strings.Contains(w.Body.String(), `The ban of user:\\u{202E} may still be in force: no answer.`) {
			t.Errorf("POST /unban: %d %s, want 503 that says why", w.Code, w.Body)
		}
	})
}

func TestEngines(t *testing.T) {
	local := testcheck.Must(memory.New(memory.Options{MaxSubjects: 1000}))
	l := testcheck.Must(failover.New(undecided{local}, failover.Options{Local: local}))
	defer l.Close()
	c := newConsole(t, l, console.Options{
		Engines: []ratelimit.Limiter{local},
		Facts:   func(context.Context) map[string]any { return map[string]any{"version": "8912345", "calls": 8912345} },
	})
	if r := reportOf(t, c, ""); len(r.Engines) != 2 || r.Engines[0].Away || r.Facts["version"] != "8912345" {
		t.Errorf("the engines are %+v, want failover, with its circuit closed, and memory", r.Engines)
	}
	for range 10 {
		send(t, c, l, "user:ann", 1)
	}
	r := reportOf(t, c, "")
	if e := r.Engines[0]; e.Engine != "failover" || !e.Away || e.Facts["opened"] != 1.0 {
		t.Errorf("the first engine is %+v, want failover with an open circuit", e)
	}
	if e := r.Engines[1]; e.Engine != "memory" || e.Facts["subjects"] != 1.0 {
		t.Errorf("the second engine is %+v, want memory with one subject", e)
	}
	if body := get(c, "/").Body.String(); !strings.Contains(body, "The circuit is open") || !strings.Contains(body, "<dd>8912345</dd>") || !strings.Contains(body, "<dd>8,912,345</dd>") {
		t.Error("the page does not say that the circuit is open, or lacks the version")
	}
}

// An engine that does not answer.
type undecided struct{ *memory.Limiter }

func (undecided) Take(context.Context, string, *ratelimit.Plan, int64) (ratelimit.Decision, error) {
	return ratelimit.Decision{}, ratelimit.ErrUnavailable
}

func TestUnban(t *testing.T) {
	l := testcheck.Must(memory.New(memory.Options{}))
	c := newConsole(t, l, console.Options{})
	const subject = `user:<b>"ann"&` + "\u202e\u2800\u3164\ufe0f "
	testcheck.NoError(t, l.Ban(t.Context(), subject, time.Hour, "your requests load one page in a loop"))
	if r := reportOf(t, c, ""); r.Bans.Total != 1 || r.Bans.List[0].Subject != subject {
		t.Errorf("the bans are %+v, want that of %q", r.Bans, subject)
	}
	if body := get(c, "/").Body.String(); strings.Contains(body, "<b>") || strings.Contains(body, "<td><bdi>\u202e") || !strings.Contains(body, `&amp;\u{202E}\u{2800}\u{3164}\u{FE0F}\u{20}`) {
		t.Errorf("the page does not show the name as text: %s", body)
	}
	form := url.Values{"subject": {url.PathEscape(subject)}}
	for name, header := range map[string]http.Header{
		"another site":   {"Sec-Fetch-Site": {"cross-site"}},
		"another origin": {"Origin": {"https://other.example"}},
	} {
		if w := post(c, "", form, header); w.Code != 403 {
			t.Errorf("a form of %s: %d, want 403", name, w.Code)
		}
	}
	if w := get(c, "/unban?"+form.Encode()); w.Code != 404 {
		t.Errorf("GET /unban: %d, want 404", w.Code)
	}
	for _, test := range []struct {
		query string
		form  url.Values
		want  int
	}{{"", nil, 400}, {"?" + form.Encode(), nil, 400}, {"", url.Values{"subject": {"user:50%"}}, 400}, {"", url.Values{"subject": {"user:bob"}}, 404}} {
		if w := post(c, test.query, test.form, nil); w.Code != test.want {
			t.Errorf("POST /unban%s of %q: %d %s, want %d", test.query, test.form, w.Code, w.Body, test.want)
		}
	}
	if bans, err := l.Bans(t.Context()); err != nil || len(bans) != 1 {
		t.Errorf("the bans are %v (%v), want that nothing has ended one", bans, err)
	}
	if w := post(c, "", form, http.Header{"Sec-Fetch-Site": {"same-origin"}}); w.Code != 303 || w.Header().Get("Location") != "./#bans" {
		t.Errorf("POST /unban: %d to %q, want 303 to the page", w.Code, w.Header().Get("Location"))
	}
	if r := reportOf(t, c, ""); r.Bans.Total != 0 {
		t.Errorf("the bans are %+v, want none", r.Bans)
	}
}

// Page and JSON name each ban in characters that no form changes, as browsers change line ends and
// what is not UTF-8.
func TestUnbanOfAnyBytes(t *testing.T) {
	l := testcheck.Must(memory.New(memory.Options{}))
	c := newConsole(t, l, console.Options{})
	for b := range 256 {
		subject := "user:%41+" + string([]byte{byte(b)})
		testcheck.NoError(t, l.Ban(t.Context(), subject, time.Hour, ""))
		value := reportOf(t, c, "").Bans.List[0].Unban
		input := `<input type="hidden" name="subject" value="` + html.EscapeString(value) + `">`
		if body := strings.ReplaceAll(get(c, "/").Body.String(), "&#43;", "+"); !strings.Contains(body, input) || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Errorf("the page does not have the form value %q", value)
		}
		w := post(c, "", url.Values{"subject": {value}}, http.Header{"Origin": {"http://example.com"}})
		if bans, err := l.Bans(t.Context()); w.Code != 303 || err != nil || len(bans) != 0 {
			t.Fatalf("POST /unban of %q as %q: %d, and the bans are %v (%v)", subject, value, w.Code, bans, err)
		}
	}
}

func post(h http.Handler, query string, form url.Values, header http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "/console/unban"+query, strings.NewReader(form.Encode()))
	for name, values := range header {
		r.Header[name] = values
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestManyBans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := testcheck.Must(memory.New(memory.Options{}))
		c := newConsole(t, l, console.Options{})
		want := []string{}
		for i := range 204 {
			want = append(want, fmt.Sprintf("user:%03d", i))
			testcheck.NoError(t, l.Ban(t.Context(), want[i], 100*time.Minute-time.Duration(i/3)*time.Minute, ""))
		}
		r, got := reportOf(t, c, ""), []string{}
		for _, ban := range r.Bans.List {
			got = append(got, ban.Subject)
		}
		if diff := cmp.Diff(want[:200], got); diff != "" || r.Bans.Total != 204 {
			t.Errorf("of %d bans these are listed, want the 200 that end last, equal ends in order of subjects (-want +got):\n%s", r.Bans.Total, diff)
		}
		if body := get(c, "/").Body.String(); !strings.Contains(body, "These are the 200 that end last.") {
			t.Error("the page does not say that there are more bans")
		}
	})
}

func TestDeprecations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := []console.User{{Subject: "user:old", Requests: 7, Last: time.Now().UTC()}}
		operations := []console.Deprecation{
			{Operation: "getPet", Since: time.Now().UTC(), Sunset: time.Now().Add(time.Hour).UTC(), Successor: "/v2/pets"},
			{Operation: "listPets", Users: known},
			{Operation: "addPet", Users: []console.User{}},
		}
		c := newConsole(t, testcheck.Must(memory.New(memory.Options{})), console.Options{
			Deprecations: func(context.Context) ([]console.Deprecation, error) { return operations, nil },
		})
		c.DeprecatedUse("getPet", "user:bob")
		time.Sleep(time.Minute)
		c.DeprecatedUse("getPet", "user:ann")
		c.DeprecatedUse("getPet", "user:ann")
		c.DeprecatedUse("listPets", "user:ann")
		c.DeprecatedUse("addPet", "user:ann")
		want := slices.Clone(operations)
		want[0].Users = []console.User{
			{Subject: "user:ann", Requests: 2, Last: time.Now().UTC()},
			{Subject: "user:bob", Requests: 1, Last: time.Now().Add(-time.Minute).UTC()},
		}
		if diff := cmp.Diff(want, reportOf(t, c, "").Deprecations.List); diff != "" {
			t.Errorf("the deprecations (-want +got):\n%s", diff)
		}
		for i := range 20_000 {
			c.DeprecatedUse("getPet", fmt.Sprint("user:", i))
		}
		c.DeprecatedUse("getPet", "user:ann")
		users := reportOf(t, c, "").Deprecations.List[0].Users
		if len(users) != 9998 || users[0].Subject != "user:ann" || users[0].Requests != 3 {
			t.Errorf("the console holds %d users of getPet, the first one is %v, want 9998 beside 2 of other operations, and ann 3 times", len(users), users[0])
		}
	})
}

func TestRequests(t *testing.T) {
	c := newConsole(t, testcheck.Must(memory.New(memory.Options{})), console.Options{})
	for _, test := range []struct {
		method, path string
		status       int
		contentType  string
	}{
		{"GET", "/console/", 200, "text/html; charset=utf-8"},
		{"HEAD", "/console/", 200, "text/html; charset=utf-8"},
		{"GET", "/a/b/", 200, "text/html; charset=utf-8"},
		{"GET", "/console/?last=day", 200, "text/html; charset=utf-8"},
		{"GET", "/console/?last=week", 400, "application/json"},
		{"GET", "/console/console.json", 200, "application/json"},
		{"GET", "/console/console.css", 200, "text/css; charset=utf-8"},
		{"GET", "/console/console.js", 200, "text/javascript; charset=utf-8"},
		{"GET", "/console/icon.svg", 200, "image/svg+xml"},
		{"GET", "/console", 404, "text/plain; charset=utf-8"},
		{"GET", "/console/page.html", 404, "text/plain; charset=utf-8"},
		{"PUT", "/console/", 405, "application/json"},
	} {
		w := httptest.NewRecorder()
		c.ServeHTTP(w, httptest.NewRequest(test.method, test.path, nil))
		if w.Code != test.status || w.Header().Get("Content-Type") != test.contentType {
			t.Errorf("%s %s: %d %s, want %d %s", test.method, test.path, w.Code, w.Header().Get("Content-Type"), test.status, test.contentType)
		}
		fields := http.Header{"Content-Type": {test.contentType}, "X-Content-Type-Options": {"nosniff"}, "Referrer-Policy": {"same-origin"}, "Cache-Control": {"no-store"},
			"Content-Security-Policy": {"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"}}
		for _, name := range []string{"Accept-Ranges", "Allow", "Content-Length", "Vary"} {
			w.Header().Del(name)
		}
		if diff := cmp.Diff(fields, w.Header()); diff != "" && test.status != 404 {
			t.Errorf("%s %s: the header fields (-want +got):\n%s", test.method, test.path, diff)
		}
	}
}

func TestPage(t *testing.T) {
	l := testcheck.Must(memory.New(memory.Options{}))
	c := newConsole(t, l, console.Options{Title: `The "pets" <b>`})
	if err := l.Ban(t.Context(), "user:ann", time.Hour, ""); err != nil { // so that the page has all its links
		t.Fatal(err)
	}
	body, prefix := get(c, "/").Body.String(), testcheck.Must(url.Parse("/any/prefix/"))
	for _, match := range regexp.MustCompile(`(?:href|src|action)="([^"#]+)"`).FindAllStringSubmatch(body, -1) {
		link := testcheck.Must(prefix.Parse(match[1])).String()
		if !strings.HasPrefix(link, "/any/prefix/") || match[1] != "unban" && get(c, link).Code != 200 {
			t.Errorf("under /any/prefix/, the page has a link to %s, want to what the console serves", link)
		}
	}
	if !strings.Contains(body, "<h1>The &#34;pets&#34; &lt;b&gt; ") {
		t.Error("the page does not have its title as text")
	}
	for _, inline := range []string{"<style", " style=", "onclick", "<script>"} {
		if strings.Contains(body, inline) {
			t.Errorf("the page has %s, which its policy forbids", inline)
		}
	}
}

func TestNew(t *testing.T) {
	works := testcheck.Must(memory.New(memory.Options{}))
	for name, bad := range map[string]ratelimit.Limiter{"nil": nil, "a nil engine": (*memory.Limiter)(nil), "the zero engine": new(memory.Limiter)} {
		for _, engines := range [][]ratelimit.Limiter{{bad}, {works, bad}} {
			_, err := console.New(engines[0], console.Options{Engines: engines[1:]})
			if want := "console: New: the limiter and each of Options.Engines must not be nil or the zero memory.Limiter"; err == nil || err.Error() != want {
				t.Errorf("New of %s as engine %d of %d returns %v, want %s", name, len(engines), len(engines), err, want)
			}
		}
	}
}

// Observe and pages are concurrent, and nothing is lost.
func TestConcurrent(t *testing.T) {
	l := testcheck.Must(memory.New(memory.Options{}))
	c := newConsole(t, l, console.Options{})
	done := make(chan bool)
	for range 4 {
		go func() {
			defer func() { done <- true }()
			for range 100 {
				send(t, c, l, "user:ann", 1)
				c.DeprecatedUse("getPet", "user:ann")
			}
		}()
		get(c, "/?last=day")
	}
	for range 4 {
		<-done
	}
	if got := reportOf(t, c, "?last=day").Subjects[0]; got.Allowed+got.Denied != 400 {
		t.Errorf("%+v, want 400 requests", got)
	}
}

// Text can be read on every ground that it is on, light and dark: a contrast of 4.5 at least (WCAG
// 2.2 success criterion 1.4.3, level AA).
func TestContrast(t *testing.T) {
	css := get(newConsole(t, testcheck.Must(memory.New(memory.Options{})), console.Options{}), "/console.css").Body.String()
	luminance := func(colour string, dark int) (sum float64) {
		m := regexp.MustCompile(`--` + colour + `: light-dark\(#([0-9a-f]{6}), #([0-9a-f]{6})\);`).FindStringSubmatch(css)
		if m == nil {
			t.Fatalf("there is no colour %s", colour)
		}
		for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
			n := testcheck.Must(strconv.ParseUint(m[1+dark][2*i:2*i+2], 16, 8))
			sum += weight * math.Pow((float64(n)/255+0.055)/1.055, 2.4)
		}
		return sum
	}
	for text, on := range map[string][]string{
		"text": {"ground", "surface", "sunken", "bad-ground"}, "muted": {"ground", "surface", "sunken"}, "accent": {"surface"},
		"warn": {"surface", "warn-ground"}, "bad": {"surface", "sunken", "bad-ground"},
	} {
		for _, ground := range on {
			for dark := range 2 {
				x, y := luminance(text, dark), luminance(ground, dark)
				if got := (max(x, y) + 0.05) / (min(x, y) + 0.05); got < 4.5 {
					t.Errorf("%s on %s has a contrast of %.2f, want 4.5", text, ground, got)
				}
			}
		}
	}
}
