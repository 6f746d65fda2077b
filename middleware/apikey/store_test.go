package apikey_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
)

// A look-up that began before a key was revoked does not admit requests that arrive a
// second after the revocation, however slow the store is, and its answer does not replace
// that of a later look-up.
func TestSlowStoreDoesNotDelayRevocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key, read := "", make(chan apikey.Record, 1)
		began := 0
		store := storeFunc(func(ctx context.Context, d apikey.Digest) (apikey.Record, error) {
			began++
			if began == 1 { // reads at once, and takes long to say so
				record := apikey.Record{Principal: ann}
				time.Sleep(1800 * time.Millisecond)
				read <- record
				return record, nil
			}
			return apikey.Record{Principal: ann, Revoked: time.Now()}, nil
		})
		v := newVerifier(t, store, apikey.Options{})
		key = newFormat(t, "pet_live_").Generate().Reveal()

		first := later(t.Context(), v, key)
		pass(999 * time.Millisecond)
		joined := later(t.Context(), v, key)
		pass(time.Millisecond)
		verify(t, v, key, apikey.ErrRevoked) // a second after the first one began, a new look-up
		if err := <-first; err != nil {
			t.Errorf("the one that began the slow look-up: %v", err)
		}
		if err := <-joined; err != nil {
			t.Errorf("one that came within a second of it: %v", err)
		}
		<-read
		verify(t, v, key, apikey.ErrRevoked)
		if valid, invalid := v.Remembered(); valid != 0 || invalid != 1 {
			t.Errorf("remembered as valid %d times, as invalid %d times; want the younger answer alone", valid, invalid)
		}
	})
}

type storeFunc func(context.Context, apikey.Digest) (apikey.Record, error)

func (f storeFunc) Lookup(ctx context.Context, d apikey.Digest) (apikey.Record, error) {
	return f(ctx, d)
}

// However many invented keys come, few are looked up at a time, and a key that was
// valid lately does not wait for them.
func TestUnknownKeysDoNotTakeTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		v := newVerifier(t, store, apikey.Options{UnknownLookups: 3})
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
			v := newVerifier(t, store, apikey.Options{UnknownLookups: 1})
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
