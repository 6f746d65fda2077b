package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/reference/internal/admin"
	"github.com/animalstore/gatehouse/reference/internal/keys"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

var secretForm = regexp.MustCompile(`^pet_live_[0-9A-Za-z]{36}$`)

func TestClientManagesKeys(t *testing.T) {
	s, _ := start(t, withToken)
	c := client(s, token).Keys()
	ctx := t.Context()
	year := keys.Duration(365 * 24 * time.Hour)
	issued, err := c.Create(ctx, keys.New{Name: "batch", Owner: "cyd & co/7", Plan: "enterprise", Quotas: []string{"5/minute"}, ExpiresIn: year})
	must(t, err)
	key := issued.Key
	if !secretForm.MatchString(issued.Secret) || !strings.HasSuffix(issued.Secret, key.LastFour) || key.Expires == nil {
		t.Errorf("Create = %+v, want a secret and an expiry", issued)
	}
	want := keys.Info{Name: "batch", Owner: "cyd & co/7", Plan: "enterprise", Quotas: []string{"5/minute"}, State: "active"}
	ignored := cmpopts.IgnoreFields(keys.Info{}, "ID", "LastFour", "Created", "Expires", "Revoked")
	if diff := cmp.Diff(want, key, ignored); diff != "" {
		t.Errorf("Create (-want +got):\n%s", diff)
	}

	rotated, err := c.Rotate(ctx, key.ID, keys.Replacement{})
	must(t, err)
	if rotated.Key.ID == key.ID || rotated.Old.ID != key.ID || !secretForm.MatchString(rotated.Secret) || rotated.Secret == issued.Secret {
		t.Errorf("Rotate = %+v, want another key in addition to %s", rotated, key.ID)
	}
	if left := time.Until(*rotated.Old.Expires); left > 24*time.Hour || left < 23*time.Hour {
		t.Errorf("the old key is valid for another %v, want 24 hours", left)
	}
	if life := rotated.Key.Expires.Sub(rotated.Key.Created); life != time.Duration(year) {
		t.Errorf("the new key lives for %v, want as long as the old one, %v", life, time.Duration(year))
	}

	revoked, err := c.Revoke(ctx, key.ID)
	if err != nil || revoked.Already || revoked.Key.State != "revoked" || revoked.Key.Revoked == nil {
		t.Errorf("Revoke = %+v, %v, want that it is revoked now", revoked, err)
	}
	if revoked, err = c.Revoke(ctx, key.ID); err != nil || !revoked.Already {
		t.Errorf("Revoke again = %+v, %v, want that it was revoked already", revoked, err)
	}

	list, err := c.List(ctx)
	must(t, err)
	var states []string
	for _, k := range list {
		states = append(states, k.Owner+" "+k.State)
	}
	if diff := cmp.Diff([]string{"ada active", "bob active", "cyd & co/7 revoked", "cyd & co/7 active"}, states); diff != "" {
		t.Errorf("List (-want +got):\n%s", diff)
	}
}

// The errors are those of the command line, with the names of members instead of flags.
func TestErrorsOfKeys(t *testing.T) {
	h := newHandler(t, nil)
	created := post(h, "/keys", "application/json", `{"name":"n","owner":"eve","plan":"pro"}`)
	var issued keys.Issued
	if err := json.Unmarshal(created.Body.Bytes(), &issued); err != nil || created.Code != 201 || created.Header().Get("Cache-Control") != "no-store" {
		t.Fatalf("POST /keys: %d %v %s, want 201 that no cache stores", created.Code, created.Header(), created.Body)
	}
	id := issued.Key.ID
	if w := serve(h, "DELETE", "/keys/"+id, local); w.Code != 200 {
		t.Fatalf("DELETE /keys/%s: %d %s", id, w.Code, w.Body)
	}
	for _, tt := range []struct {
		target, body  string
		status        int
		code, message string
	}{
		{"/keys", `{"name":"n","owner":"o","plan":"gold"}`, 400, "invalid_body", `Unknown plan "gold"; the plans are free, pro, business, enterprise.`},
		{"/keys", `{"name":"n","owner":"o","plan":"pro","limits":["5/fortnight"]}`, 400, "invalid_body", `Key limit: quota "5/fortnight": the window must be second, minute, hour, day, month, or a duration such as 30s or 168h.`},
		{"/keys", `{"owner":"o","plan":"free"}`, 400, "invalid_body", "name must have 1 to 255 characters, got none."},
		{"/keys", `{"name":"n","owner":"a\u0007","plan":"free"}`, 400, "invalid_body", `owner must not have control characters, got "a\a".`},
		{"/keys", `{"name":"n","owner":"o","plan":"free","expiresIn":"tomorrow"}`, 400, "invalid_body", `The body must be one JSON object of the documented form: "tomorrow" must be a duration such as 24h or 30d.`},
		{"/keys", `{"name":"n","owner":"o","plan":"free","secret":"x"}`, 400, "invalid_body", `The body must be one JSON object of the documented form: unknown field "secret".`},
		{"/keys/" + id + "/rotate", `{"overlap":"-1h"}`, 400, "invalid_body", "overlap must not be negative, got -1h0m0s."},
		{"/keys/" + id + "/rotate", `{}`, 409, "key_inactive", "Cannot rotate key " + id + ": it is revoked or expired; create another one with petstore keys create."},
		{"/keys/key_0/rotate", `{}`, 404, "key_not_found", `There is no key with the ID "key_0"; petstore keys list shows the IDs.`},
		{"/keys/%2e%2e%00/rotate", `{}`, 404, "key_not_found", `There is no key with the ID "..\x00"; petstore keys list shows the IDs.`},
	} {
		w := post(h, tt.target, "application/json", tt.body)
		var got struct{ Code, Message string }
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != tt.status || got.Code != tt.code || got.Message != tt.message {
			t.Errorf("POST %s %s: %d %s, want %d %s %q", tt.target, tt.body, w.Code, w.Body, tt.status, tt.code, tt.message)
		}
	}
	if w := serve(h, "DELETE", "/keys/key_0", local); w.Code != 404 || !strings.Contains(w.Body.String(), `There is no key with the ID \"key_0\"`) {
		t.Errorf("DELETE of another key: %d %s, want 404", w.Code, w.Body)
	}
	if w := serve(h, "POST", "/keys/"+id+"/rotate", local); w.Code != 415 {
		t.Errorf("rotation without a body: %d, want 415, because a form of another origin could send it", w.Code)
	}
}

// Neither the log nor the audit log holds a secret. Both name the actor and the change.
func TestChangesAreAudited(t *testing.T) {
	var log bytes.Buffer
	h := newHandler(t, func(c *admin.Config) {
		withToken(c)
		c.Logger = slog.New(slog.NewJSONHandler(&log, nil))
	})
	var issued, rotated keys.Issued
	decode := func(body *bytes.Buffer, out any) {
		t.Helper()
		if err := json.Unmarshal(body.Bytes(), out); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
	}
	decode(post(h, "/keys", "application/json", `{"name":"shop","owner":"eve","plan":"pro"}`, withAuth).Body, &issued)
	decode(post(h, "/keys/"+issued.Key.ID+"/rotate", "application/json", `{}`, withAuth).Body, &rotated)
	serve(h, "DELETE", "/keys/"+rotated.Key.ID, local, withAuth)
	post(h, "/bans", "application/json", `{"owner":"eve","seconds":60}`, withAuth)
	serve(h, "DELETE", "/bans?owner=eve", local, withAuth)
	serve(h, "DELETE", "/bans?owner=eve", local, withAuth) // changes nothing
	if w := post(h, "/bans", "application/json", `{"owner":"nobody","seconds":60}`, withAuth); w.Code != 404 ||
		!strings.Contains(w.Body.String(), `There is no key of the owner \"nobody\"; petstore keys list shows the owners.`) {
		t.Errorf("a ban of an owner without a key: %d %s, want 404", w.Code, w.Body)
	}

	var audit struct{ Entries []store.AuditEntry }
	decode(serve(h, "GET", "/audit?limit=5", local, withAuth).Body, &audit)
	want := []store.AuditEntry{
		{Action: "ban.end", Target: "owner:eve"},
		{Action: "ban.start", Target: "owner:eve", Detail: `length="1m0s"`},
		{Action: "key.revoke", Target: rotated.Key.ID},
		{Action: "key.rotate", Target: issued.Key.ID},
		{Action: "key.create", Target: issued.Key.ID},
	}
	for i := range audit.Entries {
		e := &audit.Entries[i]
		if e.Actor != "admin" || e.From != "127.0.0.1" || time.Since(e.At) > time.Hour {
			t.Errorf("entry %+v, want the actor admin at 127.0.0.1 now", *e)
		}
		if strings.HasPrefix(e.Action, "key.") {
			if !strings.Contains(e.Detail, `owner="eve"`) {
				t.Errorf("entry %+v, want the owner", *e)
			}
			e.Detail = ""
		}
	}
	if diff := cmp.Diff(want, audit.Entries, cmpopts.IgnoreFields(store.AuditEntry{}, "ID", "At", "Actor", "From")); diff != "" {
		t.Errorf("GET /audit (-want +got):\n%s", diff)
	}
	shown := log.String() + serve(h, "GET", "/audit", local, withAuth).Body.String() + serve(h, "GET", "/keys", local, withAuth).Body.String()
	if strings.Contains(shown, issued.Secret) || strings.Contains(shown, rotated.Secret) || strings.Contains(shown, token) {
		t.Errorf("a secret is in the log, the audit log or the list of keys:\n%s", shown)
	}
	if !strings.Contains(log.String(), `"route":"/bans","status":200,"subject":"owner:eve","outcome":"banned"`) {
		t.Errorf("the log is %s, want the ban", &log)
	}
	if !strings.Contains(log.String(), `"route":"/keys/{id}/rotate","status":201,"key":"`+issued.Key.ID+`"`) {
		t.Errorf("the log is %s, want the rotated key", &log)
	}
}

func TestAuditQuery(t *testing.T) {
	h := newHandler(t, nil)
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for query, want := range map[string]int{"": 2, "limit=1": 1, "since=2026-01-01T00:00:00Z": 2, "since=" + later: 0, "since=&limit=": 2, "limit=1000": 2} {
		var audit struct{ Entries []store.AuditEntry }
		w := serve(h, "GET", "/audit?"+query, local)
		if err := json.Unmarshal(w.Body.Bytes(), &audit); err != nil || w.Code != 200 || audit.Entries == nil || len(audit.Entries) != want {
			t.Errorf("GET /audit?%s: %d %s, want %d entries", query, w.Code, w.Body, want)
		}
	}
	for _, query := range []string{"limit=0", "limit=1001", "limit=x", "limit=1&limit=1", "since=yesterday", "since=24h", "until=1", "since=%zz"} {
		if w := serve(h, "GET", "/audit?"+query, local); w.Code != 400 || !strings.Contains(w.Body.String(), "The parameters are since, a time such as 2026-11-22T00:00:00Z, and limit, a whole number from 1 to 1000.") {
			t.Errorf("GET /audit?%s: %d %s, want 400", query, w.Code, w.Body)
		}
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
	for _, target := range []string{"GET /keys", "GET /audit", "DELETE /keys/key_0"} {
		method, path, _ := strings.Cut(target, " ")
		if w := serve(h, method, path, local); w.Code != 503 || !strings.Contains(w.Body.String(), "The database cannot be used at the moment.") {
			t.Errorf("%s: %d %s, want 503", target, w.Code, w.Body)
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
	s.Limiter = admin.Audited(aloneLimiter{s.Limiter}, s.Store, slog.New(slog.DiscardHandler), func() time.Time { return noon })
	h := handlerOf(t, s)
	for _, w := range []*httptest.ResponseRecorder{
		post(h, "/bans", "application/json", `{"network":"192.0.2.1","seconds":60,"reason":"spam"}`), serve(h, "DELETE", "/bans?network=192.0.2.1", local),
	} {
		if w.Code < 500 {
			t.Errorf("answered with %d %s, want an error", w.Code, w.Body)
		}
	}
	const who = `"at":"2026-05-04T12:00:00Z","actor":"admin","from":"127.0.0.1",`
	const want = `{"entries":[` +
		`{"id":2,` + who + `"action":"ban.end","target":"network:192.0.2.1/32","detail":"effect=\"on this server only\""},` +
		`{"id":1,` + who + `"action":"ban.start","target":"network:192.0.2.1/32","detail":"length=\"1m0s\" reason=\"spam\" effect=\"on this server only\""}]}` + "\n"
	if diff := cmp.Diff(want, serve(h, "GET", "/audit", local).Body.String()); diff != "" {
		t.Errorf("GET /audit (-want +got):\n%s", diff)
	}
}
