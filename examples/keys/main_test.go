package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/animalstore/gatehouse/examples/internal/script"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/apikey"
)

func TestScript(t *testing.T) {
	format := testcheck.Must(apikey.NewFormat("demo_"))
	store := keys{}
	key := store.issue(format, free)
	script.Run(t, func() (http.Handler, error) { return newHandler(format, store) }, "KEY="+key)
}

// failing is a database that is down.
type failing struct{}

func (failing) Lookup(context.Context, apikey.Digest) (apikey.Record[apikey.Principal], error) {
	return apikey.Record[apikey.Principal]{}, errors.New("database is down")
}

// While keys cannot be verified, clients use up no quota of their network, and get no ban.
func TestDatabaseDown(t *testing.T) {
	format := testcheck.Must(apikey.NewFormat("demo_"))
	handler := testcheck.Must(newHandler(format, failing{}))
	key := "Bearer " + format.Generate().Reveal()
	for i := range 200 {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/whoami", nil)
		r.Header.Set("Authorization", key)
		if handler.ServeHTTP(w, r); w.Code != 503 {
			t.Fatalf("request %d: %d, want 503", i, w.Code)
		}
	}
}
