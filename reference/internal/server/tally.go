package server

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// tallyPeriod is the shortest time between two log lines of one tally.
const tallyPeriod = time.Minute

// A tally counts events that clients can cause in any number, and logs their count:
// the first event at once, further ones at most once in each tallyPeriod. It has a
// timer only while there are events.
type tally struct {
	log   func(n int)
	total atomic.Int64 // events since the start

	mu    sync.Mutex
	n     int         // events that are not logged yet
	timer *time.Timer // nil: the next event is logged at once
}

// newTally returns a tally. Its lines name the setting that causes the events and the
// limit in force.
func newTally(logger *slog.Logger, message, setting string, limit func() int) *tally {
	return &tally{log: func(n int) {
		logger.Warn(message, slog.Int("connections", n), slog.String("setting", setting), slog.Int("limit", limit()))
	}}
}

func (t *tally) add() {
	t.total.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
	if t.timer == nil {
		t.report()
	}
}

// report logs the count and starts the next period. The caller holds t.mu.
func (t *tally) report() {
	if t.n == 0 {
		t.timer = nil
		return
	}
	t.log(t.n)
	t.n = 0
	t.timer = time.AfterFunc(tallyPeriod, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.timer != nil { // otherwise stop came first
			t.report()
		}
	})
}

// stop logs the count and stops the timer.
func (t *tally) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
	if t.n > 0 {
		t.log(t.n)
		t.n = 0
	}
	t.timer = nil
}
