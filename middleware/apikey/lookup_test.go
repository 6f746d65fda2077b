package apikey_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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
		v := newVerifier(t, store, apikey.Options{})
		key, other := store.issue(t), store.issue(t)
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

func TestOneWhoGivesUpTakesNothingFromTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		store.before = slow(500 * time.Millisecond)
		v := newVerifier(t, store, apikey.Options{})
		key := store.issue(t)

		ctx, cancel := context.WithCancel(t.Context())
		first := later(ctx, v, key)
		pass(100 * time.Millisecond)
		second := later(t.Context(), v, key)
		pass(100 * time.Millisecond)
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) || errors.Is(err, bearer.ErrInvalid) {
			t.Errorf("the request that gave up: got %v, want the error of its context", err)
		}
		if err := <-second; err != nil {
			t.Errorf("the request that still waits: got error %v", err)
		}
		calls(t, store, 1)
	})
}

// When no request waits any longer, the look-up ends. Its late answer is not cached,
// and the next request asks again.
func TestLookUpEndsWithTheLastOneWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		ended := 0
		store.before = func(ctx context.Context, _ apikey.Digest) {
			<-ctx.Done()
			ended++
		}
		v := newVerifier(t, store, apikey.Options{})
		key := store.issue(t)
		ctx, cancel := context.WithCancel(t.Context())
		a, b := later(ctx, v, key), later(ctx, v, key)
		pass(100 * time.Millisecond)
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

// If a store ignores its context, no request waits longer than two seconds.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		store.before = func(context.Context, apikey.Digest) { time.Sleep(time.Minute) }
		v := newVerifier(t, store, apikey.Options{})
		key := store.issue(t)
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
	v := newVerifier(t, store, apikey.Options{})
	if _, err := v.Verify(context.WithValue(t.Context(), key{}, "value"), store.issue(t)); err != nil {
		t.Error(err)
	}
}

// Everything at once, for the race detector: no answer is ever wrong.
func TestConcurrentUse(t *testing.T) {
	store := newStore()
	v := newVerifier(t, store, apikey.Options{TTL: 50 * time.Microsecond})
	v.Shrink(32, 32)
	format := newFormat(t, "pet_live_")
	wants := map[string]error{}
	for range 40 {
		wants[store.issue(t)] = nil
		wants[store.issue(t, func(r *record) { r.Revoked = now })] = apikey.ErrRevoked
		wants[format.Generate().Reveal()] = apikey.ErrUnknown
	}
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for range 25 {
				for key, want := range wants {
					ctx, cancel := t.Context(), func() {}
					if worker == 0 {
						ctx, cancel = context.WithTimeout(ctx, 20*time.Microsecond)
					}
					_, err := v.Verify(ctx, key)
					if err != want && !(worker == 0 && errors.Is(err, context.DeadlineExceeded)) {
						t.Errorf("error %v, want %v", err, want)
					}
					cancel()
				}
			}
		})
	}
	all.Wait()
	if n := v.UnderWay(); n != 0 {
		t.Errorf("%d look-ups are left over", n)
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
		v := newVerifier(t, store, apikey.Options{})
		v.Shrink(640, 3)
		good := store.issue(t)
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
		format := newFormat(t, "pet_live_")
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

// What goes wrong in a store stays with the request.
func TestStoreThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for want, misbehave := range map[string]func(){
			"out of cheese":       func() { panic("out of cheese") },
			"ended the goroutine": runtime.Goexit,
		} {
			store := newStore()
			store.before = func(context.Context, apikey.Digest) { misbehave() }
			v := newVerifier(t, store, apikey.Options{})
			v.Shrink(640, 1)
			key := store.issue(t)
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
