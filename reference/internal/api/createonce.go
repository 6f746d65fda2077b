package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// storePet stores a pet, once if the request has an idempotency key, and only if its
// preconditions are true. The keys of one owner have nothing to do with those of another.
func (a *api) storePet(ctx context.Context, r *http.Request, p store.NewPet, key string) (stored store.Pet, replayed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	var k *store.IdempotencyKey
	if key != "" {
		principal, _ := bearer.FromContext[apikey.Principal](r.Context()) // there is one behind the gate
		k = &store.IdempotencyKey{Owner: principal.Owner, Key: key, Fingerprint: fingerprintOf(p), At: a.Now()}
	}
	switch {
	case hasPreconditions(r):
		stored, replayed, err = a.Pets.CreatePetIf(ctx, p, k, a.createCondition(r))
	case k != nil:
		stored, replayed, err = a.Pets.CreatePetOnce(ctx, p, *k)
	default:
		stored, err = a.Pets.CreatePet(ctx, p)
	}
	switch {
	case errors.Is(err, store.ErrMismatch):
		err = errIdempotencyKeyReused.Wrap(err)
	case errors.Is(err, store.ErrCondition):
		err = errPrecondition.Wrap(err)
	}
	return stored, replayed, err
}

// createCondition returns the preconditions of createPet. The target is the list, so they
// are about the list that GET would return. The store evaluates them together with the
// write: of several requests with the same ETag, one is performed.
//
// A request that is repeated with its idempotency key is answered without them: the first
// one was performed, and may be what changed the list (RFC 9110 section 13.1.1 allows
// that answer).
func (a *api) createCondition(r *http.Request) store.Condition {
	query, invalid := parseListQuery(r.URL.RawQuery, a.pageLimit)
	return func(list func(store.ListQuery) ([]store.Pet, bool, error)) (bool, error) {
		etag := "" // if the query is not valid, there is no such list
		if invalid == nil {
			stored, more, err := list(query)
			if err != nil {
				return false, err
			}
			page, err := a.newListPage(query, stored, more)
			if err != nil {
				return false, err
			}
			etag = page.chosenETag(r)
		}
		_, err := preconditions(r, etag)
		return err == nil, nil
	}
}
