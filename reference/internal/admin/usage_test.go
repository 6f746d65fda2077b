package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/admin"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

var keyID = regexp.MustCompile(`"id":"key_[0-9A-Za-z]{16}"`)

var noon = time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)

// newServer returns a server at noon, with a store and an engine.
var anonymous = ratelimit.MustPlan("anonymous", ratelimit.Penalty{}, ratelimit.PerMinute(60))

func newServer(t *testing.T) *admin.Server {
	t.Helper()
	engine, err := memory.New(memory.Options{Now: func() time.Time { return noon }})
	must(t, err)
	db := newStore(t)
	return &admin.Server{Limiter: engine, Store: db, Plan: plans.Of, Anonymous: anonymous}
}

func handlerOf(t *testing.T, s *admin.Server) http.Handler {
	t.Helper()
	return newHandler(t, func(c *admin.Config) {
		c.Now = func() time.Time { return noon }
		c.Server = func() *admin.Server { return s }
	})
}

func TestUsage(t *testing.T) {
	s := newServer(t)
	const owner = "50% of & co/7"
	db := s.Store.(*sqlite.Store)
	hours := func(n time.Duration) time.Time { return noon.Add(n * time.Hour) }
	createKey(t, db, store.NewKey{Owner: owner, Plan: "free", Created: hours(-2)})
	createKey(t, db, store.NewKey{Owner: owner, Plan: "pro", Created: hours(-2), Expires: hours(-1)})
	createKey(t, db, store.NewKey{Owner: owner, Plan: "free", Created: hours(-1)})
	createKey(t, db, store.NewKey{Owner: owner, Plan: "enterprise", Quotas: []string{"3/hour"}, Limits: []string{"2/month from 17"}, Created: hours(-1)})
	free, err := plans.Of("free", nil)
	must(t, err)
	for range 2 {
		_, err := s.Limiter.(*memory.Limiter).Take(t.Context(), "owner:"+owner, free, 1)
		must(t, err)
	}
	today := store.Day(noon)
	if err := db.AddDailyUse(t.Context(),
		store.DailyUse{Owner: owner, Day: today.AddDate(0, 0, -90), Allowed: 9},
		store.DailyUse{Owner: owner, Day: today.AddDate(0, 0, -89), Allowed: 5, Denied: 1},
		store.DailyUse{Owner: owner, Day: today, Allowed: 2}); err != nil {
		t.Fatal(err)
	}
	h := handlerOf(t, s)
	const target = "/usage?owner=50%25+of+%26+co%2F7"
	get := func() string { return serve(h, "GET", target).Body.String() }
	const head = `{"owner":"50% of \u0026 co/7","keys":3,"plans":[{"plan":"free","quotas":[` +
		`{"limit":60,"windowSeconds":60,"remaining":58,"reset":1777896060},{"limit":1000,"windowSeconds":86400,"remaining":998,"reset":1777939200}],"strikesLeft":10},` +
		`{"plan":"enterprise","quotas":[{"limit":3,"windowSeconds":3600,"remaining":`
	const tail = `"days":[{"day":"2026-02-04","allowed":5,"denied":1},{"day":"2026-05-04","allowed":2,"denied":0}],`
	// The enterprise key has an hour, in which nothing was counted for free.
	want := head + `3,"reset":1777899600}],"strikesLeft":10}],` + tail +
		`"limited":[{"id":"","name":"n","quotas":[{"limit":2,"windowSeconds":2592000,"calendar":"month from 17","remaining":2,"reset":1778976000}]}]}` + "\n"
	if diff := cmp.Diff(want, keyID.ReplaceAllString(get(), `"id":""`)); diff != "" {
		t.Errorf("GET %s (-want +got):\n%s", target, diff)
	}

	must(t, s.Limiter.Ban(t.Context(), "owner:"+owner, time.Hour, ""))
	if got := get(); !strings.Contains(got, `"ban":{"ends":"2026-05-04T13:00:00Z"}`) {
		t.Errorf("GET %s of a banned owner: %s, want the ban", target, got)
	}
	s.Plan = func(string, []string) (*ratelimit.Plan, error) { return nil, errors.New("no such plan") }
	if got := get(); !strings.Contains(got, `"plans":[{"plan":"free","quotas":[],"error":"no such plan"},{"plan":"enterprise","quotas":[],"error":"no such plan"}]`) {
		t.Errorf("GET %s without the plans: %s, want why", target, got)
	}
}

func TestUsageOfUnknownOwners(t *testing.T) {
	s := newServer(t)
	h := handlerOf(t, s)
	for _, query := range []string{"", "owner=", "owner=a&owner=b", "network=192.0.2.1", "owner=ada&x=1", "owner=%zz", "owner=%ff"} {
		if w := serve(h, "GET", "/usage?"+query); w.Code != 400 || !strings.Contains(w.Body.String(), "Name the owner: owner=NAME.") {
			t.Errorf("GET /usage?%s: %d %s, want 400", query, w.Code, w.Body)
		}
	}
	for _, query := range []string{"owner=ada", "owner=%00", "owner=" + strings.Repeat("x", 5000)} {
		if w := serve(h, "GET", "/usage?"+query); w.Code != 404 || !strings.Contains(w.Body.String(), `"code":"owner_not_found"`) {
			t.Errorf("GET /usage?%.40s: %d %.200s, want 404", query, w.Code, w.Body)
		}
	}
	// The keys of an owner may be gone, but not its days.
	must(t, s.Store.AddDailyUse(t.Context(), store.DailyUse{Owner: "eve", Day: store.Day(noon), Allowed: 1}))
	const want = `{"owner":"eve","keys":0,"plans":[],"days":[{"day":"2026-05-04","allowed":1,"denied":0}]}` + "\n"
	if w := serve(h, "GET", "/usage?owner=eve"); w.Body.String() != want {
		t.Errorf("GET /usage?owner=eve: %d %s, want %s", w.Code, w.Body, want)
	}
}

// Keys of one custom plan differ in their quotas. A plan without a penalty has no strikes.
func TestUsageOfPlans(t *testing.T) {
	s := newServer(t)
	db := s.Store.(*sqlite.Store)
	createKey(t, db, store.NewKey{Owner: "ada", Plan: "enterprise", Quotas: []string{"3/hour"}, Created: noon.Add(-time.Second)})
	createKey(t, db, store.NewKey{Owner: "ada", Plan: "enterprise", Quotas: []string{"4/hour"}, Created: noon.Add(-time.Microsecond)})
	createKey(t, db, store.NewKey{Owner: "old", Plan: "free", Created: noon.Add(-time.Hour), Expires: noon.Add(-time.Minute)})
	s.Plan = func(name string, quotas []string) (*ratelimit.Plan, error) {
		p, err := plans.Of(name, quotas)
		return p.WithoutPenalty(), err
	}
	h := handlerOf(t, s)
	quota := func(limit string) string {
		return `{"plan":"enterprise","quotas":[{"limit":` + limit + `,"windowSeconds":3600,"remaining":` + limit + `,"reset":1777899600}]}`
	}
	for owner, want := range map[string]string{
		"ada": `{"owner":"ada","keys":2,"plans":[` + quota("3") + "," + quota("4") + `],"days":[]}` + "\n",
		"old": `{"owner":"old","keys":0,"plans":[],"days":[]}` + "\n",
	} {
		if diff := cmp.Diff(want, serve(h, "GET", "/usage?owner="+owner).Body.String()); diff != "" {
			t.Errorf("GET /usage?owner=%s (-want +got):\n%s", owner, diff)
		}
	}
	s.Store = withoutDays{db}
	if w := serve(h, "GET", "/usage?owner=ada"); w.Code != 503 {
		t.Errorf("GET /usage without the days: %d, want 503", w.Code)
	}
}

// withoutDays is a database that cannot list the days now.
type withoutDays struct{ *sqlite.Store }

func (withoutDays) ListDailyUse(context.Context, string, time.Time) ([]store.DailyUse, error) {
	return nil, store.ErrUnavailable
}

// awayLimiter is an engine that cannot be reached.
type awayLimiter struct{ admin.Limiter }

func (awayLimiter) Peek(context.Context, string, *ratelimit.Plan) (ratelimit.Decision, error) {
	return ratelimit.Decision{}, fmt.Errorf("redis: %w", ratelimit.ErrUnavailable)
}

func TestUsageWithoutTheEngine(t *testing.T) {
	s := newServer(t)
	s.Limiter = awayLimiter{}
	gone := errors.New("the plan is gone")
	s.Plan = func(name string, quotas []string) (*ratelimit.Plan, error) {
		if name == "pro" {
			return nil, gone // so that only the limits of the key are asked for
		}
		return plans.Of(name, quotas)
	}
	for owner, k := range map[string]store.NewKey{"ada": {Plan: "free"}, "bob": {Plan: "pro", Limits: []string{"1/day"}}} {
		k.Owner, k.Created = owner, noon
		createKey(t, s.Store.(*sqlite.Store), k)
		if w := serve(handlerOf(t, s), "GET", "/usage?owner="+owner); w.Code != 503 ||
			!strings.Contains(w.Body.String(), "The database or Redis cannot be used at the moment. GET /readyz and the log say why.") {
			t.Errorf("GET /usage?owner=%s while the engine is away: %d %s, want 503", owner, w.Code, w.Body)
		}
	}
}

func TestDeprecations(t *testing.T) {
	s := newServer(t)
	day := func(d int) time.Time { return store.Day(noon).AddDate(0, 0, d) }
	s.Deprecations = map[string]deprecation.Options{
		"noSunset": {},
		"later":    {Since: day(-9), Sunset: day(10), Successor: "/v1/pets"},
		"sooner":   {Since: day(-9), Sunset: day(1)},
		"over":     {Since: day(-9), Sunset: day(-1)},
	}
	add := func(operation, owner string, n int64, last time.Time) {
		t.Helper()
		must(t, s.Store.AddDeprecatedUse(t.Context(), store.DeprecatedUse{Operation: operation, Owner: owner, Count: n, Last: last}))
	}
	add("later", "ada", 100, day(-7))
	add("later", "bob", 7, day(-6))
	add("later", "bob", 7, noon)
	add("gone", "eve", 1, day(-30))
	const want = `{"deprecations":[` +
		`{"operation":"over","since":"2026-04-25T00:00:00Z","sunset":"2026-05-03T00:00:00Z","daysLeft":0,"owners":[]},` +
		`{"operation":"sooner","since":"2026-04-25T00:00:00Z","sunset":"2026-05-05T00:00:00Z","daysLeft":1,"owners":[]},` +
		`{"operation":"later","since":"2026-04-25T00:00:00Z","sunset":"2026-05-14T00:00:00Z","daysLeft":10,"successor":"/v1/pets","owners":[` +
		`{"owner":"ada","requests":100,"last":"2026-04-27T00:00:00Z","perDay":0},{"owner":"bob","requests":14,"last":"2026-05-04T12:00:00Z","perDay":2}]},` +
		`{"operation":"gone","owners":[{"owner":"eve","requests":1,"last":"2026-04-04T00:00:00Z","perDay":0}]},` +
		`{"operation":"noSunset","owners":[]}]}` + "\n"
	w := serve(handlerOf(t, s), "GET", "/deprecations")
	if diff := cmp.Diff(want, w.Body.String()); diff != "" {
		t.Errorf("GET /deprecations, by sunset (-want +got):\n%s", diff)
	}
	var answer struct{ Deprecations []admin.Deprecation }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || len(answer.Deprecations) != 5 {
		t.Errorf("the answer cannot be read back: %v", err)
	}
}

// Until the server serves, the endpoints that need it say so, and when to ask again.
func TestWhileTheServerStarts(t *testing.T) {
	h := newHandler(t, func(c *admin.Config) { c.Server = func() *admin.Server { return nil } })
	for _, path := range []string{"/console/", "/bans", "/usage?owner=ada", "/deprecations"} {
		if w := serve(h, "GET", path); w.Code != 503 || w.Header().Get("Retry-After") != "5" {
			t.Errorf("GET %s during the start: %d, Retry-After %q, want 503 and 5", path, w.Code, w.Header().Get("Retry-After"))
		}
	}
}
