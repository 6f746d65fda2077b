package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/middleware/apikey"
)

// open opens the database of a test, and returns a function that sends requests.
func open(t *testing.T, file string) (*store, func(method, path, key string) (status int, body string)) {
	t.Helper()
	keys, err := openStore(t.Context(), file, free, pro)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keys.db.Close() })
	h, err := newHandler(keys)
	if err != nil {
		t.Fatal(err)
	}
	return keys, func(method, path, key string) (int, string) {
		r := httptest.NewRequest(method, path, nil)
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := w.Header().Get("X-RateLimit-Limit"); w.Code < 300 && got != "300" {
			t.Errorf("%s %s: the limit is %s, want the 300 of the key's plan", method, path, got)
		}
		return w.Code, w.Body.String()
	}
}

// issue adds a key of ann's to the store.
func issue(t *testing.T, keys *store, f *apikey.Format, scopes string, expires time.Time) string {
	t.Helper()
	secret, err := keys.issue(t.Context(), f, "ann", pro, scopes, expires)
	if err != nil {
		t.Fatal(err)
	}
	return secret.Reveal()
}

func TestSQLKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.db")
	keys, send := open(t, file)
	live := issue(t, keys, keys.live, "pets:read pets:write", time.Time{})
	test := issue(t, keys, keys.test, "pets:read", time.Now().Add(time.Hour))
	expired := issue(t, keys, keys.live, "pets:read", time.Now().Add(-time.Second))

	const (
		invalid = `{"code":"invalid_api_key","message":"The API key is not valid.","status":401}` + "\n"
		missing = `{"code":"missing_api_key","message":"No API key was sent. Send it as Authorization: Bearer <API key>.","status":401}` + "\n"
		scope   = `{"code":"insufficient_scope","message":"This API key does not have the scope pets:write.","status":403}` + "\n"
	)
	type step struct {
		name, method, path, key string
		status                  int
		body                    string
	}
	run := func(steps ...step) {
		t.Helper()
		for _, s := range steps {
			if status, body := send(s.method, s.path, s.key); status != s.status || body != s.body {
				t.Errorf("%s: %d %q, want %d %q", s.name, status, body, s.status, s.body)
			}
		}
	}
	run(
		step{"a live key reads", "GET", "/pets", live, 200, "the pets of ann in the live data\n"},
		step{"a live key writes", "POST", "/pets", live, 201, "a new pet of ann in the live data\n"},
		step{"a test key reads", "GET", "/pets", test, 200, "the pets of ann in the test data\n"},
		step{"a test key without the scope", "POST", "/pets", test, 403, scope},
		step{"an expired key", "GET", "/pets", expired, 401, invalid},
		step{"an unknown key", "GET", "/pets", keys.live.Generate().Reveal(), 401, invalid},
		step{"no key", "GET", "/pets", "", 401, missing},
		step{"a test key revokes itself", "DELETE", "/key", test, 204, ""},
		step{"the revoked key, at once", "GET", "/pets", test, 401, invalid},
	)

	_, send = open(t, file) // as after a restart
	run(
		step{"the live key after a restart", "GET", "/pets", live, 200, "the pets of ann in the live data\n"},
		step{"the revoked key after a restart", "GET", "/pets", test, 401, invalid},
	)
}

// A key that names a plan that the service has removed is not a client's mistake.
func TestUnknownPlan(t *testing.T) {
	keys, send := open(t, filepath.Join(t.TempDir(), "keys.db"))
	secret, err := keys.issue(t.Context(), keys.live, "ann", guests, "pets:read", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if status, body := send("GET", "/pets", secret.Reveal()); status != http.StatusServiceUnavailable {
		t.Errorf("a key of an unknown plan: %d %s, want 503", status, body)
	}
}
