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
		Decisions: now.Decisions,
		PerSecond: now.PerSecond,
		Owners:    make([]Use, len(now.Owners)),
		Networks:  make([]Use, len(now.Networks)),
		Bans:      a.bans.get(r.Context(), a.Now(), s.Limiter),
	}
	for i, u := range now.Owners {
		answer.Owners[i] = Use{Owner: strings.TrimPrefix(u.Subject, apikey.OwnerSubject("")), Allowed: u.Allowed, Denied: u.Denied}
	}
	for i, u := range now.Networks {
		answer.Networks[i] = Use{Network: strings.TrimPrefix(u.Subject, networkPrefix), Allowed: u.Allowed, Denied: u.Denied}
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

// A Top is what GET /top answers: what happened in the last seconds, and the busiest
// clients. See observe.Activity for how exact it is.
type Top struct {
	Seconds   int               `json:"seconds"`
	Decisions observe.Decisions `json:"decisions"`
	PerSecond float64           `json:"per_second"` // decisions a second, over the last five seconds
	Owners    []Use             `json:"owners"`     // the busiest first
	Networks  []Use             `json:"networks"`   // callers without a valid key
	Bans      *int              `json:"bans"`       // bans in force, up to five seconds ago; null: they cannot be listed
}

// A Use is how often an owner or a network, the other field being empty, was allowed and
// denied.
type Use struct {
	Owner   string `json:"owner,omitempty"`
	Network string `json:"network,omitempty"`
	Allowed int64  `json:"allowed"`
	Denied  int64  `json:"denied"` // limited, banned or suspended
}
