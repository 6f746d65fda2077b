package apikey_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
)

// later runs Verify in a goroutine, and returns its error in a channel.
func later(ctx context.Context, v *apikey.Verifier[apikey.Principal], key string) <-chan error {
	result := make(chan error, 1)
	go func() {
		_, err := v.Verify(ctx, key)
		result <- err
	}()
	return result
}

// pass lets d pass, and waits until all goroutines are idle.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// slow has every look-up take d, or end with its context.
func slow(d time.Duration) func(context.Context, apikey.Digest) {
	return func(ctx context.Context, _ apikey.Digest) {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
}

func TestLookUpsOfOneKeyAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		store.before = slow(500 * time.Millisecond)
		v := newVerifier(store, apikey.Options{})
		key, other := store.issue(), store.issue()
		var all []<-chan error
		for range 100 {
			all = append(all, later(t.Context(), v, key))
			time.Sleep(time.Millisecond)
		}
		all = append(all, later(t.Context(), v, other))
		for _, result := range all {
			if err := <-result; err != nil {
				t.Errorf("error %v", err)
			}
		}
		calls(t, store, 2)
	})
}

// A request that gives up takes nothing from the others. When none waits any longer, the
// look-up ends. Its late answer is not cached, and the next request asks again.
func TestLookUpEndsWithTheLastOneWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		ended := 0
		store.before = func(ctx context.Context, _ apikey.Digest) {
			<-ctx.Done()
			ended++
		}
		v := newVerifier(store, apikey.Options{})
		key := store.issue()
		early, leave := context.WithCancel(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		first := later(early, v, key)
		pass(100 * time.Millisecond)
		a, b := later(ctx, v, key), later(ctx, v, key)
		pass(100 * time.Millisecond)
		leave()
		if err := <-first; !errors.Is(err, context.Canceled) || errors.Is(err, bearer.ErrInvalid) {
			t.Errorf("the request that gave up: got %v, want the error of its context", err)
		}
		if synctest.Wait(); ended != 0 {
			t.Error("the look-up ended, though two requests wait for it")
		}
		cancel()
		<-a
		<-b
		synctest.Wait()
		if valid, _ := v.Remembered(); ended != 1 || valid != 0 || v.UnderWay() != 0 {
			t.Errorf("%d look-ups ended by their context, %d answers remembered, %d to be joined; want 1, 0, 0", ended, valid, v.UnderWay())
		}
		store.before = nil
		verify(t, v, key, nil)
		calls(t, store, 2)
	})
}

// While the store is slow, a request that gives up does not end the look-up that began after its own.
func TestGivingUpLeavesALaterLookUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		store.before = slow(1500 * time.Millisecond)
		v := newVerifier(store, apikey.Options{})
		key := store.issue()
		early, leave := context.WithCancel(t.Context())
		later(early, v, key)
		pass(1100 * time.Millisecond)
		second := later(t.Context(), v, key)
		synctest.Wait()
		leave()
		synctest.Wait()
		verify(t, v, key, nil)
		<-second
		calls(t, store, 2)
	})
}

// If a store ignores its context, no request waits longer than two seconds.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		store.before = func(context.Context, apikey.Digest) { time.Sleep(time.Minute) }
		v := newVerifier(store, apikey.Options{})
		key := store.issue()
		start := time.Now()
		err := <-later(t.Context(), v, key)
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, bearer.ErrInvalid) {
			t.Errorf("error %v, want deadline exceeded", err)
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("took %v, want the limit of 2s", took)
		}
		pass(time.Minute) // the late answer
		store.before = nil
		verify(t, v, key, nil)
		calls(t, store, 2)
	})
}

// The store sees the values of the request's context, such as its span, but not
// its end.
func TestContextOfLookUp(t *testing.T) {
	type key struct{}
	store := newStore()
	store.before = func(ctx context.Context, _ apikey.Digest) {
		if ctx.Value(key{}) != "value" {
			t.Error("the context of the look-up lacks the values of the request's")
		}
		if _, ok := ctx.Deadline(); !ok {
			t.Error("the context of the look-up has no deadline")
		}
	}
	v := newVerifier(store, apikey.Options{})
	if _, err := v.Verify(context.WithValue(t.Context(), key{}, "value"), store.issue()); err != nil {
		t.Error(err)
	}
}

type storeFunc func(context.Context, apikey.Digest) (record, error)

func (f storeFunc) Lookup(ctx context.Context, d apikey.Digest) (record, error) {
	return f(ctx, d)
}

// However many invented keys come, few are looked up at a time, and a key that was
// valid lately does not wait for them.
func TestUnknownKeysDoNotTakeTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		v := newVerifier(store, apikey.Options{})
		v.Shrink(640, 3)
		good := store.issue()
		verify(t, v, good, nil)
		time.Sleep(time.Second) // its answer is too old, its name is remembered

		var running, most atomic.Int32
		store.before = func(ctx context.Context, d apikey.Digest) {
			if d == apikey.DigestOf(good) {
				return
			}
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(100 * time.Millisecond)
		}
		format := newFormat("pet_live_")
		var flood []<-chan error
		for range 30 {
			flood = append(flood, later(t.Context(), v, format.Generate().Reveal()))
		}
		synctest.Wait()

		start := time.Now()
		verify(t, v, good, nil)
		if waited := time.Since(start); waited != 0 {
			t.Errorf("the valid key waited %v", waited)
		}
		for _, result := range flood {
			if err := <-result; err != apikey.ErrUnknown {
				t.Errorf("an invented key: %v", err)
			}
		}
		if most.Load() != 3 {
			t.Errorf("%d invented keys were looked up at the same time, want 3", most.Load())
		}

		// One that waits for its turn can give up.
		block := later(t.Context(), v, format.Generate().Reveal())
		later(t.Context(), v, format.Generate().Reveal())
		later(t.Context(), v, format.Generate().Reveal())
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		before := store.count()
		if err := <-later(ctx, v, format.Generate().Reveal()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("one that gives up: %v, want the error of its context", err)
		}
		<-block
		synctest.Wait()
		calls(t, store, before)
	})
}

// An answer that comes late does not replace that of a look-up which began later.
func TestLaterAnswerWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		v := newVerifier(storeFunc(func(context.Context, apikey.Digest) (record, error) {
			if asked++; asked > 1 {
				return record{Principal: ann, Revoked: time.Unix(0, 0)}, nil
			}
			time.Sleep(1500 * time.Millisecond)
			return record{Principal: ann}, nil
		}), apikey.Options{TTL: time.Hour})
		key := newFormat("pet_live_").Generate().Reveal()
		first := later(t.Context(), v, key)
		pass(1100 * time.Millisecond)
		verify(t, v, key, apikey.ErrRevoked)
		if err := <-first; err != nil {
			t.Errorf("the first request: %v, want what the store said to it", err)
		}
		verify(t, v, key, apikey.ErrRevoked)
	})
}

// What goes wrong in a store stays with the request.
func TestStoreThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for want, misbehave := range map[string]func(){
			"out of cheese":       func() { panic("out of cheese") },
			"ended the goroutine": runtime.Goexit,
		} {
			store := newStore()
			store.before = func(context.Context, apikey.Digest) { misbehave() }
			v := newVerifier(store, apikey.Options{})
			v.Shrink(640, 1)
			key := store.issue()
			for range 3 {
				_, err := v.Verify(t.Context(), key)
				if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, bearer.ErrInvalid) {
					t.Errorf("error %v, want one that says %q", err, want)
				}
			}
			store.before = nil
			verify(t, v, key, nil)
		}
	})
}

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
	v := newVerifier(store, apikey.Options{TTL: ttl})
	format := newFormat("pet_live_")
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
