package apikey_test

import (
	"context"
	"sync"
	"testing"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/ratelimit"
)

func newFormat(prefix string) *apikey.Format {
	return must(apikey.NewFormat(prefix))
}

func newVerifier(store apikey.Store[apikey.Principal], opts apikey.Options) *apikey.Verifier[apikey.Principal] {
	return must(apikey.NewVerifier(newFormat("pet_live_"), store, opts))
}

// record is what the stores of these tests hold.
type record = apikey.Record[apikey.Principal]

// memStore is a store whose look-ups a test can count and hold up.
type memStore struct {
	mu      sync.Mutex
	records map[apikey.Digest]record
	err     error // what every look-up fails with
	calls   int

	// before, if not nil, runs in every look-up before the records are read.
	before func(ctx context.Context, d apikey.Digest)
}

func newStore() *memStore {
	return &memStore{records: map[apikey.Digest]record{}}
}

func (s *memStore) Lookup(ctx context.Context, d apikey.Digest) (record, error) {
	s.mu.Lock()
	s.calls++
	s.mu.Unlock()
	if s.before != nil {
		s.before(ctx, d)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.records[d]
	if s.err != nil {
		return record{}, s.err
	}
	if !ok {
		return record{}, apikey.ErrUnknown
	}
	return found, nil
}

// issue stores a new key of ann's, changed by edits, and returns it.
func (s *memStore) issue(edits ...func(*record)) string {
	issued := record{Principal: ann}
	for _, edit := range edits {
		edit(&issued)
	}
	key := newFormat("pet_live_").Generate().Reveal()
	s.put(key, issued)
	return key
}

func (s *memStore) put(key string, r record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[apikey.DigestOf(key)] = r
}

func (s *memStore) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *memStore) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

var ann = apikey.Principal{KeyID: "key_1", Owner: "ann", Plan: new(ratelimit.Plan)}

// damaged returns a key with another last character, so that its checksum is
// wrong.
func damaged(key string) string {
	if key[len(key)-1] == '0' {
		return key[:len(key)-1] + "1"
	}
	return key[:len(key)-1] + "0"
}

// verify verifies a key and holds the result against the error that is wanted.
func verify(t *testing.T, v *apikey.Verifier[apikey.Principal], key string, want error) {
	t.Helper()
	principal, err := v.Verify(context.Background(), key)
	if err != want {
		t.Errorf("Verify: error %v, want %v", err, want)
	}
	wantPrincipal := ann
	wantPrincipal.Subject, wantPrincipal.Prefix = "owner:ann", "pet_live_"
	if want != nil {
		wantPrincipal = apikey.Principal{}
	}
	if principal != wantPrincipal {
		t.Errorf("Verify: principal %v, want %v", principal, wantPrincipal)
	}
}

func calls(t *testing.T, store *memStore, want int) {
	t.Helper()
	if got := store.count(); got != want {
		t.Errorf("the store was asked %d times, want %d", got, want)
	}
}

// must returns v. It panics if what a test sets up fails.
func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}
