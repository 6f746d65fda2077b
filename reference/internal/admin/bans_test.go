package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/admin"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// A ban ends at a whole second, at least as late as it was asked for.
func TestEndOfABan(t *testing.T) {
	s := newServer(t)
	for after, want := range map[time.Duration]string{0: "12:01:00", 1: "12:01:01", time.Second - 1: "12:01:01"} {
		h := newHandler(t, func(c *admin.Config) {
			c.Now = func() time.Time { return noon.Add(after) }
			c.Server = func() *admin.Server { return s }
		})
		_, err := s.Limiter.(*memory.Limiter).Take(t.Context(), "network:192.0.2.1/32", anonymous, 1)
		must(t, err)
		w := post(h, "/bans", "application/json", `{"network":"192.0.2.1","seconds":60}`)
		if body := `{"network":"192.0.2.1/32","ends":"2026-05-04T` + want + `Z","level":0,"reason":"by hand"}` + "\n"; w.Body.String() != body {
			t.Errorf("a ban of a minute, %v after noon: %s, want %s", after, w.Body, body)
		}
	}
}

func TestBanRefusesWhatIsUnclear(t *testing.T) {
	h := newHandler(t, nil)
	const target = "Name the owner or the network to ban: owner, or network with an IP address or a network as in the list of bans."
	const form = "application/json"
	for _, tt := range []struct {
		contentType, body string
		status            int
		message           string
	}{
		{form, `{"seconds":60}`, 400, target},
		{form, `{"owner":"bob","network":"192.0.2.1","seconds":60}`, 400, target},
		{form, `{"network":"192.0.2.0/24","seconds":60}`, 400, `"192.0.2.0/24" cannot be banned: name one IP address`},
		{form, `{"network":"bob","seconds":60}`, 400, `"bob" cannot be banned: name one IP address`},
		{form, `{"owner":"bob"}`, 400, "/seconds is required"},
		{form, `{"owner":"bob","seconds":0}`, 400, "/seconds must be at least 1"},
		{form, `{"owner":"bob","seconds":31622401}`, 400, "/seconds must be at most 31622400"},
		{form, `{"owner":7,"seconds":60}`, 400, "/owner must be a string"},
		{form, `{"owner":"b\u0007","seconds":60}`, 400, `owner must not have control characters, got "b\a".`},
		{form, `{"owner":"bob","seconds":60,"because":"x"}`, 400, "/because is not allowed"},
		{form, `{"owner":"bob","seconds":60,"reason":"a\nb"}`, 400, "reason must be at most 200 bytes of UTF-8, without control characters and without spaces at its ends."},
		{form, `{"owner":"bob","seconds":60,"reason":"` + strings.Repeat("x", 201) + `"}`, 400, "reason must be at most 200 bytes"},
		{form, ``, 400, "The request body is empty."},
		{"text/plain", `{"owner":"bob","seconds":60}`, 415, "The request body must have the Content-Type application/json."},

		// Nothing is guessed.
		{form, `{"owner":"bob","owner":"eve","seconds":60}`, 400, "/owner occurs more than once"},
		{form, `{"Owner":"bob","seconds":60}`, 400, "/Owner is not allowed"},
		{form, "{\"owner\":\"bob\xff\",\"seconds\":60}", 400, "The request body is not valid UTF-8."},
		{form, `{"owner":"bob\ud800","seconds":60}`, 400, "surrogate"},
		{form, `{"owner":"bob","seconds":60}{}`, 400, "The request body "},
	} {
		w := post(h, "/bans", tt.contentType, tt.body)
		var got struct{ Message string }
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != tt.status || !strings.Contains(got.Message, tt.message) {
			t.Errorf("POST /bans %s %.80s: %d %s, want %d and %q", tt.contentType, tt.body, w.Code, w.Body, tt.status, tt.message)
		}
	}
	if w := serve(h, "GET", "/bans", local); strings.Contains(w.Body.String(), "bob") || !strings.Contains(w.Body.String(), "ada") {
		t.Errorf("the bans afterwards are %s, want only ada's", w.Body)
	}
	if w := post(h, "/bans", "application/json; charset=utf-8", `{"owner":"bob","seconds":60}`); w.Code != 200 || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("a ban: %d %s, want 200", w.Code, w.Body)
	}
}

func ban(t testing.TB, engine *memory.Limiter, subjects ...string) {
	t.Helper()
	for i, subject := range subjects {
		must(t, engine.Ban(t.Context(), subject, time.Duration(i+1)*time.Hour, ""))
	}
}

func TestClientOfBans(t *testing.T) {
	s, engine := start(t, withToken)
	c := client(s, token)

	bans, err := c.Bans(t.Context())
	if err != nil || len(bans) != 0 {
		t.Fatalf("Bans without any = %v, %v", bans, err)
	}
	owner := `50% of / "Ada & Söhne"?`
	ban(t, engine, apikey.OwnerSubject(owner), "network:192.0.2.1/32", "network:2001:db8:0:1::/64")
	for range 2 { // the second one replaces the first
		if b, err := c.Ban(t.Context(), admin.NewBan{Owner: "ada", Seconds: 3, Reason: "spam"}); err != nil || b.Owner != "ada" || b.Reason != "spam" {
			t.Fatalf("Ban = %+v, %v", b, err)
		}
	}
	bans, err = c.Bans(t.Context())
	must(t, err)
	for i, b := range bans {
		if left := time.Until(b.Ends); left <= 0 || left > 3*time.Hour+time.Second {
			t.Errorf("ban %d ends in %v, want up to three hours", i, left)
		}
		bans[i].Ends = time.Time{}
	}
	want := []admin.Ban{
		{Network: "2001:db8:0:1::/64", Reason: "by hand"}, {Network: "192.0.2.1/32", Reason: "by hand"},
		{Owner: owner, Reason: "by hand"}, {Owner: "ada", Reason: "spam"},
	}
	if diff := cmp.Diff(want, bans); diff != "" {
		t.Errorf("Bans, those that end last first (-want +got):\n%s", diff)
	}

	type unban struct {
		was bool
		err error
	}
	do := func(was bool, err error) unban { return unban{was, err} }
	for i, got := range []unban{
		do(c.Unban(t.Context(), owner, "")),
		do(c.Unban(t.Context(), "ada", "")),
		do(c.Unban(t.Context(), "", "::ffff:192.0.2.1")),
		do(c.Unban(t.Context(), "", "2001:db8:0:1::/64")),
	} {
		if !got.was || got.err != nil {
			t.Errorf("unban %d = %v, %v, want true", i, got.was, got.err)
		}
	}
	if was, err := c.Unban(t.Context(), owner, ""); was || err != nil {
		t.Errorf("unbanning twice = %v, %v, want false", was, err)
	}
	if bans, err := c.Bans(t.Context()); err != nil || len(bans) != 0 {
		t.Errorf("Bans when all have ended = %v, %v", bans, err)
	}
}

// A client that has sent no request may be another one than the operator means.
func TestBanWarnsOfWhatIsUnseen(t *testing.T) {
	s := newServer(t)
	h := handlerOf(t, s)
	ban := func(body, want string) {
		t.Helper()
		var b admin.Ban
		if err := json.Unmarshal(post(h, "/bans", "application/json", body).Body.Bytes(), &b); err != nil || b.Warning != want {
			t.Errorf("POST /bans %s warns %q (%v), want %q", body, b.Warning, err, want)
		}
	}
	const network, owner = `{"network":"192.0.2.7","seconds":60}`, `{"owner":"ada","seconds":60}`
	ban(network, "No request without a valid key from 192.0.2.7/32 is counted at the moment.")
	ban(network, "") // it is banned
	for range 2 {
		ban(owner, `The owner "ada" has sent no request in the last 90 days; petstore keys list shows the owners.`)
	}
	must(t, s.Store.(store.DailyUses).AddDailyUse(t.Context(), store.DailyUse{Owner: "ada", Day: store.Day(noon).AddDate(0, 0, -89), Denied: 1}))
	ban(owner, "")
	if _, err := s.Limiter.(*memory.Limiter).Take(t.Context(), "network:192.0.2.8/32", anonymous, 1); err != nil {
		t.Fatal(err)
	}
	ban(`{"network":"192.0.2.8","seconds":60}`, "")
	s.Anonymous = ratelimit.UnlimitedPlan("anonymous")
	ban(`{"network":"192.0.2.9","seconds":60}`, "")
	s.DailyUse = func(context.Context, string, time.Time) ([]store.DailyUse, error) { return nil, errors.New("closed") }
	ban(owner, "")
}

func TestUnbanRefusesWhatIsUnclear(t *testing.T) {
	s, engine := start(t, nil)
	ban(t, engine, apikey.OwnerSubject("ada"), "network:192.0.2.1/32")
	const text = `{"code":"invalid_parameter","message":"Name the owner or the network to unban: owner=NAME, or network=ADDRESS with an IP address or a network as in the list of bans.",`
	for _, query := range []string{
		"", "owner=", "owner=ada&owner=bob", "owner=ada&network=192.0.2.1", "subject=owner:ada", "owner=%zz",
		"owner=%ff", "network=", "network=ada", "network=192.0.2.0/24", "network=2001:db8::/48",
	} {
		if w := serve(s.Config.Handler, "DELETE", "/bans?"+query, local); w.Code != 400 || !strings.Contains(w.Body.String(), text) {
			t.Errorf("DELETE /bans?%s = %d %s, want 400 and %s", query, w.Code, w.Body, text)
		}
	}
	if bans, err := client(s, "").Bans(t.Context()); err != nil || len(bans) != 2 {
		t.Errorf("Bans afterwards = %v, %v, want both", bans, err)
	}
}

func TestClientErrors(t *testing.T) {
	guarded, _ := start(t, withToken)
	if _, err := client(guarded, "").Bans(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "the server requires its admin token; set ") {
		t.Errorf("Bans without a token = %v, want that it is missing", err)
	}
	if _, err := client(guarded, "another-token-of-some-length").Unban(t.Context(), "ada", ""); err == nil || !strings.HasPrefix(err.Error(), "the server has another admin token ") {
		t.Errorf("Unban with another token = %v, want that it is wrong", err)
	}

	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		want    string
	}{
		{"a page", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }, "check that it is the admin listener"},
		{"another API", http.NotFound, "answered 404 Not Found; check that it is the admin listener"},
		{"another API with the same errors", func(w http.ResponseWriter, r *http.Request) {
			new(apierror.Responder).Mux(http.NewServeMux()).ServeHTTP(w, r)
		}, "answered 404 Not Found; check that it is the admin listener"},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, "answered 302 Found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewServer(tt.handler)
			defer s.Close()
			if _, err := client(s, token).Bans(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Bans = %v, want an error that says %q", err, tt.want)
			}
		})
	}

	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	_, err := client(closed, token).Bans(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "no server answers at 127.0.0.1:") || strings.Contains(err.Error(), token) || strings.Contains(err.Error(), "http://") {
		t.Errorf("Bans of no server = %v, want that, and the address without the token", err)
	}
}
