package api

import (
	"context"
	"errors"
	"fmt"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// keyStore finds stored keys with their plans, for package apikey.
type keyStore struct {
	keys store.KeyFinder
	plan func(name string, quotas []string) (*ratelimit.Plan, error)
}

func (s keyStore) Lookup(ctx context.Context, d apikey.Digest) (apikey.Record, error) {
	key, err := s.keys.KeyByDigest(ctx, d)
	if errors.Is(err, store.ErrNotFound) {
		return apikey.Record{}, apikey.ErrUnknown
	}
	if err != nil {
		return apikey.Record{}, err
	}
	plan, err := s.plan(key.Plan, key.Quotas)
	if err != nil {
		return apikey.Record{}, fmt.Errorf("plan of key %s: %w", key.ID, err)
	}
	record := key.Record(plan)
	if record.Principal.Limits, err = key.LimitsPlan(); err != nil {
		return apikey.Record{}, fmt.Errorf("limits of key %s: %w", key.ID, err)
	}
	return record, nil
}
