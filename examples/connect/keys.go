package main

import (
	"context"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/ratelimit"
)

// keys has the record of each key by its digest.
type keys map[apikey.Digest]apikey.Record

func (k keys) Lookup(_ context.Context, d apikey.Digest) (apikey.Record, error) {
	record, ok := k[d]
	if !ok {
		return apikey.Record{}, apikey.ErrUnknown
	}
	return record, nil
}

// newAuth returns the authentication by API keys, and the key of ann.
func newAuth(errs *apierror.Responder) (_ *bearer.Authenticator[apikey.Principal], key string, err error) {
	format, err := apikey.NewFormat("demo_")
	if err != nil {
		return nil, "", err
	}
	secret := format.Generate()
	free := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(2), ratelimit.PerDay(1000))
	store := keys{secret.Digest(): {Principal: apikey.Principal{KeyID: apikey.NewKeyID(), Owner: "ann", Plan: free}}}
	verifier, err := apikey.NewVerifier(format, store, apikey.Options{})
	if err != nil {
		return nil, "", err
	}
	auth, err := bearer.New("demo", verifier.Verify, bearer.Options{Errors: errs})
	return auth, secret.Reveal(), err
}
