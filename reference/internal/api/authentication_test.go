package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/contract"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

func TestAuthentication(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	key := s.Key
	unknown := s.format.Generate().Reveal()
	const missing, invalid, repeated = "missing_api_key", "invalid_api_key", "invalid_request"
	tests := []struct {
		name   string
		header string
		code   string // "": let in
	}{
		{"as it should be", "Authorization: Bearer " + key, ""},
		{"the scheme in any case", "authorization: bEaReR " + key, ""},
		{"nothing", "X: y", missing},
		{"another scheme", "Authorization: Basic " + key, missing},
		{"a cookie", "Cookie: access_token=" + key, missing},
		{"something after the key", "Authorization: Bearer " + key + " x", invalid},
		{"a key that was never issued", "Authorization: Bearer " + unknown, invalid},
		{"two lines", "Authorization: Bearer " + key + "\r\nAuthorization: Bearer " + key, repeated},
	}
	challenges := map[string]string{
		missing:  `Bearer realm="pets"`,
		invalid:  `Bearer realm="pets", error="invalid_token", error_description="The API key is not valid"`,
		repeated: `Bearer realm="pets", error="invalid_request", error_description="More than one Authorization header was sent"`,
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			resp := s.Do(t, none(contract.Request{Target: "/v1/pets", Header: []string{test.header}}))
			if test.code == "" {
				want(t, resp, 200, "")
				return
			}
			status := 401
			if test.code == repeated {
				status = 400
			}
			want(t, resp, status, test.code)
			if got := resp.Header.Get("WWW-Authenticate"); got != challenges[test.code] {
				t.Errorf("WWW-Authenticate is %s, want %s", got, challenges[test.code])
			}
		})
	}
	for _, target := range []string{"/v1/pets?access_token=" + key, "/v1/pets?key=" + key} {
		resp := s.Do(t, none(contract.Request{Target: target}))
		want(t, resp, 401, missing)
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
