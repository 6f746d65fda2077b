package server

import (
	"log/slog"
	"sync"
	"time"
)

// tallyPeriod is the least time between two lines of one tally in the log.
const tallyPeriod = time.Minute

// A tally counts events that a client can cause as often as it likes, and logs how
// many there were: the first one at once, those that follow at most once in each
// tallyPeriod. It has a timer only while there are events.
type tally struct {
	log func(n int)

	mu    sync.Mutex
	n     int         // not logged yet
	timer *time.Timer // nil: the next event is logged at once
}

// newTally returns a tally whose lines name the setting that the events are due to
// and its value.
func newTally(logger *slog.Logger, message, setting string, value int) *tally {
	return &tally{log: func(n int) {
		logger.Warn(message, slog.Int("connections", n), slog.String("setting", setting), slog.Int("limit", value))
	}}
}

func (t *tally) add() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
	if t.timer == nil {
		t.report()
	}
}

// report logs what has been counted and starts the next period. It needs t.mu.
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

// stop logs what has been counted and ends the timer.
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
