package apikey_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/ratelimit"
)

func newFormat(t testing.TB, prefix string) *apikey.Format {
	t.Helper()
	format, err := apikey.NewFormat(prefix)
	if err != nil {
		t.Fatal(err)
	}
	return format
}

func newVerifier(t testing.TB, store apikey.Store, opts apikey.Options) *apikey.Verifier[apikey.Principal] {
	t.Helper()
	v, err := apikey.NewVerifier(newFormat(t, "pet_live_"), store, opts)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// memStore is a store whose look-ups a test can count and hold up.
type memStore struct {
	mu      sync.Mutex
	records map[apikey.Digest]apikey.Record
	err     error // what every look-up fails with
	calls   int

	delay time.Duration // between reading a record and answering

	// before, if not nil, runs in every look-up before the records are read.
	before func(ctx context.Context, d apikey.Digest)
}

func newStore() *memStore {
	return &memStore{records: map[apikey.Digest]apikey.Record{}}
}

func (s *memStore) Lookup(ctx context.Context, d apikey.Digest) (apikey.Record, error) {
	s.mu.Lock()
	s.calls++
	s.mu.Unlock()
	if s.before != nil {
		s.before(ctx, d)
	}
	s.mu.Lock()
	err, delay := s.err, s.delay
	record, ok := s.records[d]
	s.mu.Unlock()
	if delay > 0 {
		time.Sleep(delay)
	}
	if err != nil {
		return apikey.Record{}, err
	}
	if !ok {
		return apikey.Record{}, apikey.ErrUnknown
	}
	return record, nil
}

// issue stores a new key of ann's, changed by edits, and returns it.
func (s *memStore) issue(t testing.TB, edits ...func(*apikey.Record)) string {
	t.Helper()
	record := apikey.Record{Principal: ann}
	for _, edit := range edits {
		edit(&record)
	}
	secret := newFormat(t, "pet_live_").Generate()
	s.put(secret.Reveal(), record)
	return secret.Reveal()
}

func (s *memStore) put(key string, record apikey.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[apikey.DigestOf(key)] = record
}

func (s *memStore) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// stale makes later look-ups answer so long after they have read the records.
func (s *memStore) stale(delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = delay
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
