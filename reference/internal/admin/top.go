package admin

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/reference/internal/observe"
)

// busiest is how many owners and how many networks a Top has at most.
const busiest = 20

func (a *admin) top(w http.ResponseWriter, r *http.Request, s *Server) error {
	now := s.Activity.Snapshot(busiest)
	answer := Top{
		Seconds:   observe.ActivitySeconds,
		Decisions: Decisions{Allowed: now.Allowed, Limited: now.Limited, Banned: now.Banned, Suspended: now.Suspended, Undecided: now.Undecided},
		PerSecond: now.PerSecond,
		Owners:    make([]OwnerUse, len(now.Owners)),
		Networks:  make([]NetworkUse, len(now.Networks)),
		Bans:      a.bans.get(r.Context(), a.Now(), s.Limiter),
	}
	for i, u := range now.Owners {
		answer.Owners[i] = OwnerUse{Owner: strings.TrimPrefix(u.Subject, apikey.OwnerSubject("")), Allowed: u.Allowed, Denied: u.Denied}
	}
	for i, u := range now.Networks {
		answer.Networks[i] = NetworkUse{Network: strings.TrimPrefix(u.Subject, networkPrefix), Allowed: u.Allowed, Denied: u.Denied}
	}
	return writeJSON(w, http.StatusOK, answer)
}

// A banCount is the number of bans in force. It is kept for some seconds, because the
// engine has to list them, and several consoles ask every second.
type banCount struct {
	mu    sync.Mutex
	until time.Time
	n     *int
}

const (
	banCountAge     = 5 * time.Second
	banCountTimeout = time.Second
)

func (c *banCount) get(ctx context.Context, now time.Time, l Limiter) *int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Before(c.until) && c.until.Sub(now) <= banCountAge {
		return c.n
	}
	c.n, c.until = nil, now.Add(banCountAge)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), banCountTimeout)
	defer cancel()
	if bans, err := l.Bans(ctx); err == nil {
		n := len(bans)
		c.n = &n
	}
	return c.n
}

// state also answers while the server starts.
func (a *admin) state(w http.ResponseWriter, r *http.Request) error {
	health := a.runChecks(r.Context(), true)
	answer := State{
		Build: a.Build, Started: a.started.UTC(), Uptime: int64(a.Now().Sub(a.started) / time.Second),
		Ready: health.Ready, Checks: health.Checks,
	}
	if s := a.Server(); s != nil {
		report := s.Report()
		answer.Report = &report
	}
	return writeJSON(w, http.StatusOK, answer)
}
