package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/contract"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// Package bearer has the other ways to write the field, and to send no key.
func TestAuthentication(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, test := range []struct {
		target, header string
		status         int
		code           string // "": let in
		challenge      string
	}{
		{"", "authorization: bEaReR " + s.Key, 200, "", ""},
		{"", "X: y", 401, "missing_api_key", `Bearer realm="pets"`},
		{"?access_token=" + s.Key, "X: y", 401, "missing_api_key", `Bearer realm="pets"`},
		{"", "Authorization: Bearer " + s.format.Generate().Reveal(), 401, "invalid_api_key",
			`Bearer realm="pets", error="invalid_token", error_description="The API key is not valid"`},
		{"", "Authorization: Bearer " + s.Key + "\r\nAuthorization: Bearer " + s.Key, 400, "invalid_request",
			`Bearer realm="pets", error="invalid_request", error_description="More than one Authorization header was sent"`},
	} {
		resp := s.Do(t, none(contract.Request{Target: "/v1/pets" + test.target, Header: []string{test.header}}))
		want(t, resp, test.status, test.code)
		if got := resp.Header.Get("WWW-Authenticate"); got != test.challenge {
			t.Errorf("%s with %q: WWW-Authenticate is %s, want %s", resp.Target, test.header, got, test.challenge)
		}
	}
}

// What a 401 says does not depend on what is asked for, nor on why a key is not
// valid.
func TestRefusedKeysAreToldNothing(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 1)
	revoked, expired := s.format.Generate(), s.format.Generate()
	k := s.issue(t, revoked, newKey("enterprise", "9/minute"))
	_, err := s.db.RevokeKey(t.Context(), k.ID, s.clock.Now(), store.Actor{Name: "test"})
	must(t, err)
	short := newKey("enterprise", "9/minute")
	short.Expires = s.clock.Now().Add(time.Minute)
	s.issue(t, expired, short)
	s.clock.advance(time.Minute)

	answers := make(map[string]bool)
	for _, key := range []string{revoked.Reveal(), expired.Reveal(), s.format.Generate().Reveal(), s.Key[:len(s.Key)-1] + "!", "x"} {
		for _, target := range []string{"/v1/pets", "/v1/pets?limit=x", "/v1/usage", "/v1/nothing"} {
			resp := s.Do(t, contract.Request{Target: target, Key: &key})
			want(t, resp, 401, "invalid_api_key")
			answers[fmt.Sprint(string(resp.Data), resp.Header["Www-Authenticate"])] = true
		}
		if a, b := s.Do(t, contract.Request{Target: "/v1/pets/1", Key: &key}), s.Do(t, contract.Request{Target: "/v1/pets/2", Key: &key}); string(a.Data) != string(b.Data) {
			t.Errorf("a 401 for a pet that is there says %s, and for one that is not %s", a.Data, b.Data)
		}
	}
	if len(answers) != 1 {
		t.Errorf("refused keys get %d different answers, want one: %v", len(answers), answers)
	}
}

// A network can guess 60 keys a minute, and keeps no client out whose key is known. Package
// apikey has what counts as a guess.
func TestGuessedKeys(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	want(t, s.Get(t, "/v1/pets"), 200, "")
	guess := func() *contract.Response {
		return s.Do(t, contract.Request{Target: "/v1/pets", Key: new(s.format.Generate().Reveal())})
	}
	for range 60 {
		want(t, guess(), 401, "invalid_api_key")
	}
	last := guess()
	want(t, last, 429, "rate_limit_exceeded")
	if !strings.Contains(string(last.Data), "was not checked") {
		t.Errorf("the last guess is answered with %s, want that the key was not checked", last.Data)
	}
	want(t, s.Get(t, "/v1/pets"), 200, "")
}

// The list of keys says when a key was last used.
func TestUseOfAKeyIsNoted(t *testing.T) {
	t.Parallel()
	var db *sqlite.Store
	s := start(t, func(c *api.Config) { db = c.Pets.(*sqlite.Store); c.Keys = db })
	before := time.Now().Truncate(time.Microsecond)
	s.Get(t, "/v1/pets")
	for {
		keys, err := db.ListKeys(t.Context())
		must(t, err)
		if used := keys[0].LastUsed; !used.IsZero() {
			if used.Before(before) || used.After(time.Now()) {
				t.Errorf("the key was used at %v, want after %v", used, before)
			}
			return
		}
		time.Sleep(time.Millisecond)
	}
}
