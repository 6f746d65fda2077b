package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

var must = testcheck.NoError

// counter is a task that counts its saves and fails with what it is told to.
type counter struct {
	mu    sync.Mutex
	saves int
	err   error
}

func (c *counter) task(name string) store.SaveTask {
	return store.SaveTask{Name: name, Save: func(context.Context) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.saves++
		return c.err
	}}
}

func (c *counter) failWith(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

func (c *counter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.saves
}

func newLog() (*bytes.Buffer, *slog.Logger) {
	var log bytes.Buffer
	return &log, slog.New(slog.NewTextHandler(&log, nil))
}

func TestSaverSavesAtLeastOnceASecondAndAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a, b, rare counter
		rarely := rare.task("rare")
		rarely.Every = 5 * time.Second
		s := store.StartSaver(slog.New(slog.DiscardHandler), a.task("a"), b.task("b"), rarely)
		for second := 1; second <= 10; second++ {
			time.Sleep(time.Second)
			synctest.Wait()
			if a.count() < second || b.count() < second {
				t.Errorf("after %d s: %d and %d saves, want one a second at least", second, a.count(), b.count())
			}
		}
		if rare.count() != 2 {
			t.Errorf("after 10 s: %d saves of what is saved every 5 s, want 2", rare.count())
		}
		before := a.count()
		if err := s.Close(); err != nil || a.count() != before+1 || b.count() != before+1 {
			t.Errorf("Close = %v after %d and %d saves, want nil and one more of each than %d", err, a.count(), b.count(), before)
		}
		time.Sleep(10 * time.Second)
		if a.count() != before+1 {
			t.Error("it goes on saving after Close")
		}
	})
}

func TestATaskThatHangsHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c counter
		release := make(chan struct{})
		s := store.StartSaver(slog.New(slog.DiscardHandler),
			store.SaveTask{Name: "hangs", Save: func(context.Context) error { <-release; return nil }}, c.task("goes on"))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := c.count(); n < 10 {
			t.Errorf("%d saves in 10 s beside a task that hangs, want 10 at least", n)
		}
		close(release)
		if err := s.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
}

// Two saves at once could store what the later one has changed before the earlier one.
func TestTheLastSaveWaitsForTheOneUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running, most := 0, 0
		s := store.StartSaver(slog.New(slog.DiscardHandler), store.SaveTask{Name: "slow", Save: func(context.Context) error {
			running++
			most = max(most, running)
			time.Sleep(time.Minute)
			running--
			return nil
		}})
		time.Sleep(time.Second)
		if err := s.Close(); err != nil || most != 1 {
			t.Errorf("Close = %v, with %d saves at once, want 1", err, most)
		}
	})
}

func TestSaverTellsOncePerChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sound, broken counter
		log, logger := newLog()
		s := store.StartSaver(logger, sound.task("pets"), broken.task("usage"))
		lines := func(text string) int { return strings.Count(log.String(), text) }

		for round := 1; round <= 2; round++ {
			full := fmt.Errorf("disk full, try %d", round)
			broken.failWith(full)
			time.Sleep(5 * time.Second)
			synctest.Wait()
			if n := lines("cannot save; the server keeps trying"); n != round {
				t.Errorf("after %d failures that went on: the log says so %d times\n%s", round, n, log)
			}
			if err := s.Err(); !errors.Is(err, full) || strings.Contains(err.Error(), "pets") {
				t.Errorf("Err = %v, want the failure of usage alone", err)
			}
			broken.failWith(nil)
			time.Sleep(5 * time.Second)
			synctest.Wait()
			if n := lines("can save again"); n != round {
				t.Errorf("after %d recoveries: the log says so %d times\n%s", round, n, log)
			}
			if err := s.Err(); err != nil {
				t.Errorf("Err = %v when all is well again", err)
			}
		}
		if sound.count() != broken.count() {
			t.Errorf("the sound task was saved %d times, the other %d", sound.count(), broken.count())
		}

		full := errors.New("disk full")
		broken.failWith(full)
		if err := s.Close(); !errors.Is(err, full) {
			t.Errorf("Close = %v, want what could not be saved", err)
		}
	})
}

// A save that takes long must not take most of the time, and one that fails is tried again soon.
func TestSlowSavesAreRarer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration // when saves begin
		var failure error
		began := time.Now()
		s := store.StartSaver(slog.New(slog.DiscardHandler), store.SaveTask{Name: "usage", Save: func(context.Context) error {
			at = append(at, time.Since(began))
			if len(at) == 2 {
				failure = errors.New("disk full")
			}
			time.Sleep([]time.Duration{10 * time.Millisecond, 10 * time.Second, 500 * time.Millisecond, 0, 0}[min(len(at)-1, 4)])
			defer func() { failure = nil }()
			return failure
		}})
		time.Sleep(23500 * time.Millisecond)
		must(t, s.Close())
		// After the second, which failed, the next begins immediately: its time has passed.
		// Close saves once more.
		want := []time.Duration{time.Second, 2 * time.Second, 12 * time.Second, 22 * time.Second, 23 * time.Second, 23500 * time.Millisecond}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Errorf("saves began at (-want +got):\n%s", diff)
		}
	})
}
