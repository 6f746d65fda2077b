package apikey_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/middleware/apikey"
)

// A state is what the store says about a key from an instant on.
type state struct {
	since time.Time
	err   error // nil, ErrUnknown or ErrRevoked
}

// historyStore knows what it has said about each key at all times, and is slow.
type historyStore struct {
	mu     sync.Mutex
	random *rand.Rand
	keys   map[apikey.Digest][]state
}

// change lets the store say something else about a key.
func (s *historyStore) change(d apikey.Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := []error{nil, apikey.ErrUnknown, apikey.ErrRevoked}
	s.keys[d] = append(s.keys[d], state{time.Now(), errs[s.random.IntN(len(errs))]})
}

// said reports whether the store has said err about a key at some instant since from.
func (s *historyStore) said(d apikey.Digest, from time.Time, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, state := range slices.Backward(s.keys[d]) {
		if state.err == err {
			return true
		}
		if !state.since.After(from) {
			return false
		}
	}
	return false
}

// Lookup waits before it reads, and after that, up to 1.9 s in all.
func (s *historyStore) Lookup(_ context.Context, d apikey.Digest) (record, error) {
	pause := func() {
		s.mu.Lock()
		wait := time.Duration(s.random.IntN(3)/2*s.random.IntN(950)) * time.Millisecond
		s.mu.Unlock()
		time.Sleep(wait)
	}
	pause()
	s.mu.Lock()
	err := s.keys[d][len(s.keys[d])-1].err
	s.mu.Unlock()
	pause()
	switch err {
	case nil:
		return record{Principal: ann}, nil
	case apikey.ErrRevoked:
		return record{Principal: ann, Revoked: time.Unix(0, 0)}, nil
	}
	return record{}, err
}

// Whatever changes meanwhile and however slow the store is, an answer is one that the store
// has given within the TTL, or within a second if the key is not valid, and since the last
// call of Forget.
func TestHistories(t *testing.T) {
	for seed := range race.Fewer(200) {
		synctest.Test(t, func(t *testing.T) { history(t, uint64(seed)) })
	}
}

func history(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	store := &historyStore{random: rand.New(rand.NewPCG(seed, 2)), keys: map[apikey.Digest][]state{}}
	ttl := []time.Duration{100 * time.Millisecond, time.Second, 3 * time.Second, time.Hour}[random.IntN(4)]
	v := newVerifier(t, store, apikey.Options{TTL: ttl})
	format := newFormat(t, "pet_live_")
	keys := []string{format.Generate().Reveal(), format.Generate().Reveal()}
	forgotten := map[string]time.Time{}
	for _, key := range keys {
		store.change(apikey.DigestOf(key))
	}
	check := func(key string, began, forgotten time.Time) {
		_, err := v.Verify(t.Context(), key)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("seed %d: a look-up of 1.9 s at most was given up", seed)
		}
		from := began.Add(-min(ttl, time.Second))
		if err == nil {
			from = began.Add(-ttl)
		}
		if from.Before(forgotten) {
			from = forgotten
		}
		if !store.said(apikey.DigestOf(key), from, err) {
			t.Errorf("seed %d, TTL %v: the answer %v, which the store did not give in the %v before the request", seed, ttl, err, began.Sub(from))
		}
	}
	for range 150 {
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
		key := keys[random.IntN(len(keys))]
		switch random.IntN(8) {
		case 0:
			store.change(apikey.DigestOf(key))
		case 1:
			v.Forget(apikey.DigestOf(key))
			forgotten[key] = time.Now()
		default:
			go check(key, time.Now(), forgotten[key])
		}
	}
	time.Sleep(time.Minute)
	if n := v.UnderWay(); n != 0 {
		t.Errorf("seed %d: %d look-ups are left over", seed, n)
	}
}
