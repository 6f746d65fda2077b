package admin_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/admin"
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
	const target = "Name an owner or a network: owner, or network with an IP address or a network as in the list of bans."
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
		{form, `{"owner":"bob","seconds":31622401}`, 400, "/seconds must be at most 31622400"},
		{form, `{"owner":"b\u0007","seconds":60}`, 400, `owner must not have control characters, got "b\a".`},
		{form, `{"owner":"bob","seconds":60,"because":"x"}`, 400, "/because is not allowed"},
		{form, `{"owner":"bob","seconds":60,"reason":"a\nb"}`, 400, "reason must be at most 200 bytes of UTF-8, without control characters and without spaces at its ends."},
		{form, `{"owner":"bob","seconds":60,"reason":"` + strings.Repeat("x", 201) + `"}`, 400, "reason must be at most 200 bytes"},
		{"text/plain", `{"owner":"bob","seconds":60}`, 415, "The request body must have the Content-Type application/json."},
	} {
		w := post(h, "/bans", tt.contentType, tt.body)
		var got struct{ Message string }
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != tt.status || !strings.Contains(got.Message, tt.message) {
			t.Errorf("POST /bans %s %.80s: %d %s, want %d and %q", tt.contentType, tt.body, w.Code, w.Body, tt.status, tt.message)
		}
	}
	if w := serve(h, "GET", "/bans"); strings.Contains(w.Body.String(), "bob") || !strings.Contains(w.Body.String(), "ada") {
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

func TestUnbanRefusesWhatIsUnclear(t *testing.T) {
	engine, err := memory.New(memory.Options{})
	must(t, err)
	h := handlerOn(t, engine, nil)
	ban(t, engine, apikey.OwnerSubject("ada"), "network:192.0.2.1/32", "network:2001:db8:0:1::/64")
	const none = "Name an owner or a network"
	for query, text := range map[string]string{
		"": none, "owner=": none, "owner=ada&owner=bob": none,
		"owner=ada&network=192.0.2.1": none, "subject=owner:ada": none,
		"owner=%zz": none, "owner=%ff": none, "network=ada": `\"ada\" cannot be banned`,
		"network=192.0.2.0/24": "cannot be banned", "network=2001:db8::/48": "cannot be banned",
	} {
		if w := serve(h, "DELETE", "/bans?"+query); w.Code != 400 || !strings.Contains(w.Body.String(), text) {
			t.Errorf("DELETE /bans?%s = %d %s, want 400 and %s", query, w.Code, w.Body, text)
		}
	}
	const want = `(?s)"2001:db8:0:1::/64".*"192.0.2.1/32".*"ada"`
	if got := serve(h, "GET", "/bans").Body.String(); !regexp.MustCompile(want).MatchString(got) {
		t.Errorf("the bans afterwards are %s, want all, and first those that end last", got)
	}
	for _, query := range []string{"network=::ffff:192.0.2.1", "network=2001:db8:0:1::/64"} {
		if w := serve(h, "DELETE", "/bans?"+query); w.Body.String() != `{"unbanned":true}`+"\n" {
			t.Errorf("DELETE /bans?%s = %s, want the ban ended", query, w.Body)
		}
	}
}

// What answers at the address may be something else. The scripts have no server, the API of the
// server, and tokens that are missing or wrong.
func TestClientErrors(t *testing.T) {
	for want, h := range map[string]http.HandlerFunc{
		"check that it is the admin listener": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") },
		"answered 302 Found":                  func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
	} {
		s := httptest.NewServer(h)
		defer s.Close()
		c := admin.Client{Addr: strings.TrimPrefix(s.URL, "http://"), Token: token}
		_, port, _ := strings.Cut(c.Addr, ":")
		for _, host := range []string{"127.0.0.1", "0.0.0.0", ""} { // the listener may be on all addresses
			c.Addr = host + ":" + port
			if _, err := c.Bans(t.Context()); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), token) {
				t.Errorf("Bans at %s = %v, want an error that says %q, without the token", c.Addr, err, want)
			}
		}
	}
}
