package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/apikey/sqlkeys"
)

// A key works until it is revoked, and after a rotation both keys do. Each request has a
// handler of its own, which has nothing in its cache.
func TestSQLKeys(t *testing.T) {
	s, err := open(t.Context(), filepath.Join(t.TempDir(), "keys.db"))
	testcheck.NoError(t, err)
	defer s.db.Close()
	issue := func(plan string) string {
		secret := s.format.Generate()
		_, err := s.keys.Create(t.Context(), sqlkeys.NewKey{
			Digest: secret.Digest(), LastFour: secret.LastFour(), Owner: "ann", Plan: plan, Created: time.Now(),
		})
		testcheck.NoError(t, err)
		return secret.Reveal()
	}
	send := func(method, path, key string, status int) string {
		t.Helper()
		h, err := s.handler()
		testcheck.NoError(t, err)
		r := httptest.NewRequest(method, path, nil)
		r.Header.Set("Authorization", "Bearer "+key)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := w.Header().Get("X-RateLimit-Limit"); w.Code != status || status == http.StatusOK && got != "300" {
			t.Errorf("%s %s: %d with the limit %s, want %d with that of the plan", method, path, w.Code, got, status)
		}
		return strings.TrimSpace(w.Body.String())
	}
	old := issue("pro")
	send("GET", "/pets", old, http.StatusOK)
	fresh := send("POST", "/key", old, http.StatusOK)
	send("GET", "/pets", old, http.StatusOK)
	send("GET", "/pets", fresh, http.StatusOK)
	send("DELETE", "/key", fresh, http.StatusOK)
	send("GET", "/pets", fresh, http.StatusUnauthorized)
	send("GET", "/pets", s.format.Generate().Reveal(), http.StatusUnauthorized)
	send("GET", "/pets", issue("gone"), http.StatusServiceUnavailable) // not the client's mistake
}
