package main

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
)

func newMux(keys *store, verifier *apikey.Verifier[account], errs *apierror.Responder) *http.ServeMux {
	mux := http.NewServeMux()

	mux.Handle("GET /pets", errs.Handle(func(w http.ResponseWriter, r *http.Request) error {
		a, err := authorize(w, r, "pets:read")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "the pets of %s in the %s\n", a.Owner, keys.data(a))
		return err
	}))

	mux.Handle("POST /pets", errs.Handle(func(w http.ResponseWriter, r *http.Request) error {
		a, err := authorize(w, r, "pets:write")
		if err != nil {
			return err
		}
		w.WriteHeader(http.StatusCreated)
		_, err = fmt.Fprintf(w, "a new pet of %s in the %s\n", a.Owner, keys.data(a))
		return err
	}))

	// A client revokes the key that it sends, as after a leak.
	mux.Handle("DELETE /key", errs.Handle(func(w http.ResponseWriter, r *http.Request) error {
		a, _ := bearer.FromContext[account](r.Context())
		digest, err := keys.revoke(r.Context(), a.KeyID)
		if err != nil {
			return err
		}
		verifier.Forget(digest)
		w.WriteHeader(http.StatusNoContent)
		return nil
	}))
	return mux
}

// authorize returns the account of a request, or an error if its key lacks a scope (RFC
// 6750 section 3.1).
func authorize(w http.ResponseWriter, r *http.Request, scope string) (account, error) {
	a, _ := bearer.FromContext[account](r.Context())
	if !slices.Contains(a.Scopes, scope) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="pets", error="insufficient_scope", scope="`+scope+`"`)
		return a, apierror.New(http.StatusForbidden, "insufficient_scope", "This API key does not have the scope "+scope+".")
	}
	return a, nil
}
