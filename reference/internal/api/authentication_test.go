package api_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/contract"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

func TestAuthentication(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	key := s.Key
	flipped := key[:len(key)-1] + string("01"[min(1, strings.IndexByte("0", key[len(key)-1])+1)])
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
		{"the scheme and a space", "Authorization: Bearer ", missing},
		{"another scheme", "Authorization: Basic " + key, missing},
		{"no scheme", "Authorization: " + key, missing},
		{"a cookie", "Cookie: access_token=" + key, missing},
		{"something after the key", "Authorization: Bearer " + key + " x", invalid},
		{"a list", "Authorization: Bearer " + key + ", Bearer " + key, invalid},
		{"another prefix", "Authorization: Bearer pet_test_" + key[len("pet_live_"):], invalid},
		{"one character changed", "Authorization: Bearer " + flipped, invalid},
		{"8000 octets", "Authorization: Bearer " + strings.Repeat("a", 8000), invalid},
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

// countedKeys counts the look-ups of keys.
type countedKeys struct {
	store.KeyFinder
	n atomic.Int64
}

func (k *countedKeys) KeyByDigest(ctx context.Context, d store.Digest) (store.Key, error) {
	k.n.Add(1)
	return k.KeyFinder.KeyByDigest(ctx, d)
}

// A network that guesses costs the database at most 60 look-ups a minute, banned or not, and
// keeps no client out whose key is known.
func TestGuessedKeys(t *testing.T) {
	t.Parallel()
	for name, anonymous := range map[string]*ratelimit.Plan{
		"banned":     ratelimit.MustPlan("anonymous", ratelimit.DefaultPenalty(), ratelimit.PerMinute(20)),
		"not banned": ratelimit.MustPlan("anonymous", ratelimit.Penalty{}, ratelimit.PerMinute(100_000)),
	} {
		t.Run(name, func(t *testing.T) {
			var keys countedKeys
			s := startAccess(t, config.AccessList{}, config.AccessList{}, func(c *api.Config) {
				keys.KeyFinder, c.Keys, c.Anonymous = c.Keys, &keys, anonymous
			})
			guess := func(n int, addr string) (looked int64, last *contract.Response) {
				before := keys.n.Load()
				for range n {
					key := s.format.Generate().Reveal()
					last = s.Do(t, contract.Request{Target: "/v1/pets", Key: &key, Header: []string{from(addr)}})
				}
				return keys.n.Load() - before, last
			}
			want(t, s.Get(t, "/v1/pets", from("192.0.2.1")), 200, "")
			s.clock.advance(time.Minute)
			if looked, last := guess(1000, "192.0.2.1"); looked != 60 || last.StatusCode != 429 || last.Header.Get("Retry-After") == "" {
				t.Errorf("%d look-ups for 1,000 guesses, the last of which is answered with %d %s, want 60 and a 429", looked, last.StatusCode, last.Data)
			}
			want(t, s.Get(t, "/v1/pets", from("192.0.2.1")), 200, "")
			fresh := s.with(s.key(t, "new", "enterprise", "9/minute"))
			want(t, fresh.Get(t, "/v1/pets", from("192.0.2.2")), 200, "")
			if looked, _ := guess(1, "192.0.2.2"); looked != 1 {
				t.Error("a guess from another network is not looked up")
			}
		})
	}
}

func TestKeysActWithinASecond(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	secret := s.format.Generate()
	c := s.with(secret.Reveal())
	want(t, c.Get(t, "/v1/pets"), 401, "invalid_api_key")
	k := s.issue(t, secret, newKey("enterprise", "9/minute"))
	s.clock.advance(time.Second)
	want(t, c.Get(t, "/v1/pets"), 200, "")
	_, err := s.db.RevokeKey(t.Context(), k.ID, s.clock.Now(), store.Actor{Name: "test"})
	must(t, err)
	s.clock.advance(time.Second)
	want(t, c.Get(t, "/v1/pets"), 401, "invalid_api_key")
}
