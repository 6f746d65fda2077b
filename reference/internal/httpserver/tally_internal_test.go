package httpserver

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Each event is logged once: the first one at once, further ones after a minute or when
// the tally is stopped.
func TestTally(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // the timer logs in a goroutine of its own
		var logged []int
		tally := &tally{log: func(n int) {
			mu.Lock()
			defer mu.Unlock()
			logged = append(logged, n)
		}}
		tally.stop() // there is nothing to log
		want := func(when string, want ...int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(logged, want) {
				t.Errorf("%s: the logged counts are %v, want %v", when, logged, want)
			}
		}
		for range 3 {
			tally.add()
		}
		want("three events at once", 1)
		time.Sleep(tallyPeriod)
		want("after a minute", 1, 2)
		time.Sleep(tallyPeriod)
		tally.add()
		want("an event after a minute without one", 1, 2, 1)
		tally.add()
		tally.add()
		tally.stop()
		want("after stop", 1, 2, 1, 2)
		time.Sleep(2 * tallyPeriod)
		want("two minutes after stop", 1, 2, 1, 2)
		if n := tally.total.Load(); n != 6 {
			t.Errorf("the total is %d, want 6", n)
		}
	})
}
