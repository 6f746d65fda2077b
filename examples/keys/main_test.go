package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/animalstore/gatehouse/examples/internal/readme"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/ratelimit"
)

func TestKeys(t *testing.T) {
	format, err := apikey.NewFormat("demo_")
	if err != nil {
		t.Fatal(err)
	}
	secret := format.Generate()
	plan := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerDay(1000))
	store := keys{secret.Digest(): {Principal: apikey.Principal{KeyID: "key_1", Owner: "ann", Plan: plan}}}
	h, err := newHandler(format, store)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, path, key string
		status          int
		limit           string
	}{
		{"with a key", "/whoami", secret.Reveal(), 200, "1000"},
		{"without", "/whoami", "", 401, "60"},
		{"with an unknown one", "/whoami", format.Generate().Reveal(), 401, "60"},
		{"nothing there", "/nowhere", secret.Reveal(), 404, "1000"},
	} {
		r := httptest.NewRequest("GET", test.path, nil)
		if test.key != "" {
			r.Header.Set("Authorization", "Bearer "+test.key)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := w.Header().Get("X-RateLimit-Limit"); w.Code != test.status || got != test.limit {
			t.Errorf("%s: status %d under a limit of %s, want %d under %s", test.name, w.Code, got, test.status, test.limit)
		}
	}
}

func TestReadme(t *testing.T) {
	format, err := apikey.NewFormat("demo_")
	if err != nil {
		t.Fatal(err)
	}
	store := keys{}
	key := store.issue(format, free)
	readme.Server(t, func() (http.Handler, error) { return newHandler(format, store) }, "KEY="+key)
}
