package api

import (
	"context"
	"errors"
	"fmt"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// keyStore is the stored keys as package apikey wants them: with their plans.
type keyStore struct {
	keys store.KeyFinder
	plan func(name string, quotas []string) (*ratelimit.Plan, error)
}

func (s keyStore) Lookup(ctx context.Context, d apikey.Digest) (apikey.Record, error) {
	key, err := s.keys.KeyByDigest(ctx, store.Digest(d))
	if errors.Is(err, store.ErrNotFound) {
		return apikey.Record{}, apikey.ErrUnknown
	}
	if err != nil {
		return apikey.Record{}, err
	}
	record := apikey.Record{
		Principal: apikey.Principal{KeyID: key.ID, Owner: key.Owner},
		Expires:   key.Expires,
		Revoked:   key.Revoked,
	}
	if record.Plan, err = s.plan(key.Plan, key.Quotas); err != nil {
		return apikey.Record{}, fmt.Errorf("plan of key %s: %w", key.ID, err)
	}
	if record.Plan == nil { // a request must not count for a plan that is not there
		return apikey.Record{}, fmt.Errorf("plan of key %s: Config.Plan returned none for %q", key.ID, key.Plan)
	}
	return record, nil
}
