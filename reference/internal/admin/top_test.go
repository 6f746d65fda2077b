package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/admin"
	"github.com/animalstore/gatehouse/reference/internal/build"
	"github.com/animalstore/gatehouse/reference/internal/observe"
)

// bannerStub counts how often the bans are listed.
type bannerStub struct {
	admin.Limiter
	err    error
	listed int
}

func (b *bannerStub) Bans(context.Context) ([]ratelimit.Ban, error) {
	b.listed++
	return []ratelimit.Ban{{}, {}}, b.err
}

func TestTop(t *testing.T) {
	now := time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	counter := observe.NewActivity(clock)
	for range 3 {
		counter.Count(apikey.OwnerSubject("ada: b"), false, ratelimit.Allowed)
	}
	counter.Count(apikey.OwnerSubject("ada: b"), false, ratelimit.Limited)
	counter.Count("network:192.0.2.1/32", true, ratelimit.Banned)
	counter.Count("network:192.0.2.1/32", true, 0)
	for range 2 {
		counter.Count(apikey.OwnerSubject("ada: b"), false, ratelimit.Suspended)
	}
	now = now.Add(time.Second)
	stub := new(bannerStub)
	h := newHandler(t, func(c *admin.Config) {
		c.Now = clock
		c.Server = func() *admin.Server { return &admin.Server{Limiter: stub, Activity: counter} }
	})

	const want = `{"seconds":60,"decisions":{"allowed":3,"limited":1,"banned":1,"suspended":2,"undecided":1},"per_second":1.6,` +
		`"owners":[{"owner":"ada: b","allowed":3,"denied":3}],"networks":[{"network":"192.0.2.1/32","allowed":0,"denied":1}],"bans":2}` + "\n"
	for range 3 {
		if diff := cmp.Diff(want, serve(h, "GET", "/top", local).Body.String()); diff != "" {
			t.Errorf("GET /top (-want +got):\n%s", diff)
		}
	}
	if stub.listed != 1 {
		t.Errorf("the bans were listed %d times for 3 requests within five seconds, want once", stub.listed)
	}

	now, stub.err = now.Add(5*time.Second), errors.New("Redis is away")
	var top admin.Top
	if err := json.Unmarshal(serve(h, "GET", "/top", local).Body.Bytes(), &top); err != nil || top.Bans != nil || top.Decisions.Allowed != 3 {
		t.Errorf("GET /top while bans cannot be listed: %+v, %v; want all but the bans", top, err)
	}
	now, stub.err = now.Add(-time.Hour), nil
	if err := json.Unmarshal(serve(h, "GET", "/top", local).Body.Bytes(), &top); err != nil || top.Bans == nil {
		t.Errorf("GET /top after the clock stepped back: %+v, %v; want that the bans are listed again", top, err)
	}
}

func TestState(t *testing.T) {
	now := time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)
	var server *admin.Server
	h := newHandler(t, func(c *admin.Config) {
		c.Now = func() time.Time { return now }
		c.Build = build.Info{Version: "v1.2.3", Go: "go1.26.8", OS: "linux", Arch: "amd64"}
		c.Server = func() *admin.Server { return server }
		c.Checks = []admin.Check{{Name: "server", Run: func(context.Context) error {
			if server == nil {
				return errors.New("starting")
			}
			return nil
		}}}
	})
	now = now.Add(90 * time.Second)
	const started = `{"build":{"version":"v1.2.3","modified":false,"go":"go1.26.8","os":"linux","arch":"amd64"},"started":"2026-05-04T12:00:00Z","uptime":90,`
	want := started + `"ready":false,"checks":{"server":"starting"}}` + "\n"
	if w := serve(h, "GET", "/state", local); w.Code != 200 || w.Body.String() != want {
		t.Errorf("GET /state during the start: %d %s, want %s", w.Code, w.Body, want)
	}
	for _, path := range []string{"/top", "/bans"} {
		if w := serve(h, "GET", path, local); w.Code != 503 {
			t.Errorf("GET %s during the start: %d, want 503", path, w.Code)
		}
	}
	server = &admin.Server{Report: func() admin.Report {
		return admin.Report{
			Engine:      admin.Engine{Kind: "memory", Subjects: 1, Capacity: 2, Evicted: 3, Refused: 4},
			Connections: map[string]admin.Connections{"api": {Open: 5, Idle: 4, Refused: 3, Evicted: 2, Waited: 1}},
			Settings:    admin.Settings{Applied: 2, Refused: 1, Last: &now, Error: "p.yaml:1:1", Restart: []string{"listen"}},
		}
	}}
	want = started + `"ready":true,"checks":{"server":"ok"},"engine":{"kind":"memory","subjects":1,"capacity":2,"evicted":3,"refused":4},` +
		`"connections":{"api":{"open":5,"idle":4,"refused":3,"evicted":2,"waited":1}},` +
		`"settings":{"applied":2,"refused":1,"last":"2026-05-04T12:01:30Z","error":"p.yaml:1:1","restart":["listen"]}}` + "\n"
	if w := serve(h, "GET", "/state", local); w.Code != 200 || w.Body.String() != want {
		t.Errorf("GET /state: %d %s, want %s", w.Code, w.Body, want)
	}
}
