package inflight_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/animalstore/gatehouse/middleware/inflight"
)

// A group stands for the processes that share a limit.
type group struct {
	running map[string]int // by subject
	err     error          // that it cannot decide
	noLeave bool           // then
}

func (g *group) enter(ctx context.Context, subject string, limit int) (leave func(), err error) {
	if ctx.Value(http.ServerContextKey) == nil {
		panic("Shared did not get the context of the request")
	}
	if g.err == nil && g.running[subject] >= limit || g.err != nil && g.noLeave {
		return nil, g.err
	}
	g.running[subject]++
	return func() { g.running[subject]-- }, g.err
}

// A request runs if the limits of this process and of all allow it. If the shared one cannot
// decide, that of this process does.
func TestShared(t *testing.T) {
	away := errors.New("away")
	for name, test := range map[string]struct {
		group  group // with requests of other processes
		inside int   // requests of this process
		code   int
		want   inflight.Decision
		stats  inflight.Stats // with the requests inside
	}{
		"none runs":       {group{}, 0, 200, inflight.Decision{Running: 1}, inflight.Stats{Admitted: 1}},
		"room for one":    {group{running: map[string]int{"ann": 1}}, 1, 200, inflight.Decision{Running: 2}, inflight.Stats{Admitted: 2}},
		"full of others":  {group{running: map[string]int{"ann": 3}}, 0, 429, inflight.Decision{}, inflight.Stats{Refused: 1}},
		"another is full": {group{running: map[string]int{"bob": 3}}, 0, 200, inflight.Decision{Running: 1}, inflight.Stats{Admitted: 1}},
		"full together":   {group{running: map[string]int{"ann": 2}}, 1, 429, inflight.Decision{Running: 1}, inflight.Stats{Admitted: 1, Refused: 1}},
		"full here":       {group{}, 3, 429, inflight.Decision{Running: 3}, inflight.Stats{Admitted: 3, Refused: 1}},
		"cannot decide":   {group{running: map[string]int{"ann": 7}, err: away}, 0, 200, inflight.Decision{Running: 1}, inflight.Stats{Admitted: 1, Unshared: 1}},
		"nor counts it":   {group{err: away, noLeave: true}, 1, 200, inflight.Decision{Running: 2}, inflight.Stats{Admitted: 2, Unshared: 2}},
		"then full here":  {group{err: away}, 3, 429, inflight.Decision{Running: 3}, inflight.Stats{Admitted: 3, Refused: 1, Unshared: 3}},
	} {
		if g := &test.group; g.running == nil {
			g.running = make(map[string]int)
		}
		var got inflight.Decision
		l := newLimiter(3, inflight.Options{
			Shared:  test.group.enter,
			Observe: func(_ *http.Request, _ inflight.Caller, d inflight.Decision) { got = d },
		})
		send := func(h http.HandlerFunc) int {
			r := request("ann")
			return serve(l.Middleware(h), r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, t))).Code
		}
		var further func(n int) // sends a request while n others run
		further = func(n int) {
			if n > 0 {
				send(func(http.ResponseWriter, *http.Request) { further(n - 1) })
				return
			}
			others, code := test.group.running["ann"], send(func(http.ResponseWriter, *http.Request) {})
			test.want.Admitted, test.want.Limit = test.code == 200, 3
			if code != test.code || got != test.want {
				t.Errorf("%s: %d %+v, want %d %+v", name, code, got, test.code, test.want)
			}
			test.stats.Running, test.stats.Subjects = test.inside, min(test.inside, 1)
			if s := l.Stats(); s != test.stats || test.group.running["ann"] != others {
				t.Errorf("%s: %+v, %d in the group, want %+v, %d", name, s, test.group.running["ann"], test.stats, others)
			}
		}
		further(test.inside)
	}
}

// A slot is free in the group before it is in this process: a request that finds room here
// must not be refused there because of one that has ended. It is free here however Shared ends.
func TestSharedEnds(t *testing.T) {
	var l *inflight.Limiter
	for name, shared := range map[string]func() func(){
		"in order": func() func() {
			return func() {
				if n := l.Stats().Running; n != 1 {
					t.Errorf("%d requests run here while one ends in the group, want 1", n)
				}
			}
		},
		"panic":          func() func() { panic("enter") },
		"panic at leave": func() func() { return func() { panic("leave") } },
	} {
		l = newLimiter(1, inflight.Options{Shared: func(context.Context, string, int) (func(), error) { return shared(), nil }})
		ended(func() { serve(l.Middleware(http.NotFoundHandler()), request("ann")) })
		if s := l.Stats(); s.Running != 0 || s.Subjects != 0 {
			t.Errorf("%s: %+v, want that nothing runs", name, s)
		}
	}
}
