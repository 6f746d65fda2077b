package logging

import (
	"io"
	"sync"
	"time"
)

// bufferSize is how many bytes of lines wait to be written at most. As many again may be
// on their way.
const bufferSize = 1 << 20

// batchPause is how long lines are collected after a write, so that a busy server does not
// wake the goroutine, and call the system, for each line.
const batchPause = time.Millisecond

// retryPause is the time between two attempts to write after one has failed.
const retryPause = 100 * time.Millisecond

// A writer passes lines on to another one in the background. Lines that cannot be written,
// or not fast enough, wait. Those for which there is no more room are dropped, and a line
// says how many. It is safe for concurrent use.
type writer struct {
	to   io.Writer
	lost func(lines int) []byte // the line about dropped ones

	wake    chan struct{} // holds an element if lines wait
	closing chan struct{} // closed by Close
	done    chan struct{} // closed when run has ended

	mu      sync.Mutex
	pending []byte // whole lines
	dropped int    // lines since the last report of dropped ones
}

func newWriter(to io.Writer, lost func(lines int) []byte) *writer {
	w := &writer{to: to, lost: lost, wake: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{})}
	go w.run()
	return w
}

// Write takes one line. It never waits and never fails.
func (w *writer) Write(line []byte) (int, error) {
	w.mu.Lock()
	if len(w.pending)+len(line) > bufferSize {
		w.dropped++
	} else {
		w.pending = append(w.pending, line...)
	}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return len(line), nil
}

// Close waits until the lines are written, at most for a time, and not at all while writes
// fail. Later lines are not written. Call it once.
func (w *writer) Close(atMost time.Duration) {
	close(w.closing)
	select {
	case <-w.done:
	case <-time.After(atMost):
	}
}

func (w *writer) run() {
	defer close(w.done)
	var lines []byte
	for last := false; !last; time.Sleep(batchPause) {
		select {
		case <-w.wake:
		case <-w.closing:
			last = true
		}
		lines = w.take(lines[:0])
		// A write that fails is repeated from where it stopped, so that a full disk leaves
		// no part of a line.
		for rest := lines; len(rest) > 0; {
			n, err := w.to.Write(rest)
			rest = rest[n:]
			if err == nil {
				continue
			}
			select {
			case <-w.closing:
				return
			case <-time.After(retryPause):
			}
		}
	}
}

// take returns the lines that wait, and leaves an empty buffer for the next ones.
func (w *writer) take(empty []byte) (lines []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines, w.pending = w.pending, empty
	if w.dropped > 0 {
		lines = append(lines, w.lost(w.dropped)...)
		w.dropped = 0
	}
	return lines
}
