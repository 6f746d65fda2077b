package admin_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/reference/internal/admin"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// audited returns the entries of the audit log, the newest first, without those of keys.
func audited(t *testing.T, s *admin.Server) (bans []store.AuditEntry) {
	t.Helper()
	entries, err := s.Store.(store.Audits).ListAudit(t.Context(), store.AuditQuery{Limit: store.MaxAudit})
	must(t, err)
	for _, e := range entries {
		if strings.HasPrefix(e.Action, "ban.") {
			bans = append(bans, e)
		}
	}
	return bans
}

// Each ban and each end of one has an entry with the actor. What changes nothing has none.
func TestBansAreAudited(t *testing.T) {
	s := newServer(t)
	s.Limiter = admin.Audited(s.Limiter, s.Store.(store.Audits), slog.New(slog.DiscardHandler), func() time.Time { return noon })
	h := handlerOf(t, s)
	post(h, "/bans", "application/json", `{"owner":"eve","seconds":60,"reason":"spam"}`)
	serve(h, "DELETE", "/bans?owner=eve")
	serve(h, "DELETE", "/bans?owner=eve")
	want := []store.AuditEntry{
		{At: noon, Actor: "admin", From: "127.0.0.1", Action: "ban.end", Target: "owner:eve"},
		{At: noon, Actor: "admin", From: "127.0.0.1", Action: "ban.start", Target: "owner:eve", Detail: `length="1m0s" reason="spam"`},
	}
	if diff := cmp.Diff(want, audited(t, s), cmpopts.IgnoreFields(store.AuditEntry{}, "ID")); diff != "" {
		t.Errorf("the audit log (-want +got):\n%s", diff)
	}
}

// Bans must work while the database does not.
func TestBansWithoutTheDatabase(t *testing.T) {
	db := newStore(t, "ada")
	var log bytes.Buffer
	h := newHandler(t, func(c *admin.Config) {
		server := *c.Server()
		server.Store = db
		server.Limiter = admin.Audited(server.Limiter, db, slog.New(slog.NewJSONHandler(&log, nil)), time.Now)
		c.Server = func() *admin.Server { return &server }
	})
	must(t, db.Close())
	if w := post(h, "/bans", "application/json", `{"owner":"eve","seconds":60}`); w.Code != 200 {
		t.Errorf("a ban: %d %s, want 200", w.Code, w.Body)
	}
	if !strings.Contains(log.String(), `"msg":"cannot store an entry of the audit log","action":"ban.start","subject":"owner:eve"`) {
		t.Errorf("the log is %s, want what the audit log does not have", &log)
	}
	for _, path := range []string{"/usage?owner=ada", "/deprecations"} {
		w := serve(h, "GET", path)
		if w.Code != 503 || w.Header().Get("Retry-After") != "5" || !strings.Contains(w.Body.String(), "The database or Redis cannot be used at the moment.") {
			t.Errorf("GET %s: %d %v %s, want 503", path, w.Code, w.Header(), w.Body)
		}
	}
}

// aloneLimiter is an engine whose Redis does not answer.
type aloneLimiter struct{ admin.Limiter }

func (aloneLimiter) Ban(context.Context, string, time.Duration, string) error {
	return fmt.Errorf("ban: %w", failover.ErrLocalOnly)
}

func (aloneLimiter) Unban(context.Context, string) (bool, error) {
	return false, fmt.Errorf("unban: %w", failover.ErrLocalOnly)
}

// A ban that holds on one server only has an entry that says so, although it is an error.
func TestBansOnOneServerAreAudited(t *testing.T) {
	s := newServer(t)
	s.Limiter = admin.Audited(aloneLimiter{s.Limiter}, s.Store.(store.Audits), slog.New(slog.DiscardHandler), func() time.Time { return noon })
	h := handlerOf(t, s)
	for _, w := range []*httptest.ResponseRecorder{
		post(h, "/bans", "application/json", `{"network":"192.0.2.1","seconds":60,"reason":"spam"}`), serve(h, "DELETE", "/bans?network=192.0.2.1"),
	} {
		if w.Code < 500 {
			t.Errorf("answered with %d %s, want an error", w.Code, w.Body)
		}
	}
	const where = `effect="on this server, and perhaps on no other"`
	got := audited(t, s)
	if len(got) != 2 || got[0].Detail != where || got[1].Detail != `length="1m0s" reason="spam" `+where {
		t.Errorf("the audit log has %+v, want both with %s", got, where)
	}
}
