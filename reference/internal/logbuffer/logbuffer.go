// Package logbuffer writes a log in the background, so that a program which logs
// never waits for a reader of the log, or for a full disk.
//
//	w := logbuffer.New(os.Stdout, lostLine)
//	logger := slog.New(slog.NewJSONHandler(w, nil))
//	...
//	w.Close(2 * time.Second)
//
// Lines wait in memory, up to [Size] bytes, and one goroutine writes them. If there
// is no more room, or a write fails, it drops and counts lines. The log says how
// many as soon as it can be written again.
//
// A process that is killed loses the lines that are waiting, which are usually
// those of the last millisecond.
package logbuffer

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
)

// Size is how many bytes of lines wait to be written at most. As many again may be
// on their way.
const Size = 1 << 20

// A Writer passes lines on to another writer in the background. It is made by [New]
// and safe for concurrent use.
type Writer struct {
	to   io.Writer
	lost func(lines uint64) []byte

	wake chan struct{} // holds an element if the goroutine has something to do
	done chan struct{} // closed when it has ended

	mu       sync.Mutex
	pending  []byte // whole lines
	closed   bool
	dropped  uint64 // lines, ever
	reported uint64 // of them, those that the log has reported
	failure  error  // of the last write
}

// New returns a Writer to another one. lost returns the line with which the log says
// that lines are missing.
func New(to io.Writer, lost func(lines uint64) []byte) *Writer {
	w := &Writer{to: to, lost: lost, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go w.loop()
	return w
}

// Write takes one or more whole lines. It never waits and never fails.
func (w *Writer) Write(lines []byte) (int, error) {
	w.mu.Lock()
	if w.closed || len(w.pending)+len(lines) > Size {
		w.dropped += count(lines)
	} else {
		w.pending = append(w.pending, lines...)
	}
	w.mu.Unlock()
	w.signal()
	return len(lines), nil
}

// Dropped returns how many lines have been dropped since the start.
func (w *Writer) Dropped() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped
}

// Err returns an error with the number of dropped lines until the log has reported
// them, and nil otherwise.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.dropped == w.reported:
		return nil
	case w.failure != nil:
		return fmt.Errorf("the log cannot be written, lines dropped since the start: %d: %w", w.dropped, w.failure)
	default:
		return fmt.Errorf("the log is not read fast enough, lines dropped since the start: %d", w.dropped)
	}
}

// Close writes the lines that are waiting, for at most a time, and reports whether
// it could. Lines that come later are dropped.
func (w *Writer) Close(atMost time.Duration) bool {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.signal()
	select {
	case <-w.done:
	case <-time.After(atMost):
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failure == nil
}

func (w *Writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *Writer) loop() {
	defer close(w.done)
	var lines []byte
	torn := false // a write that failed left a part of a line
	for range w.wake {
		closed := false
		for {
			var missing uint64
			lines, missing, closed = w.take(lines[:0])
			if len(lines) == 0 && missing == 0 {
				break
			}
			if !w.pass(lines, missing, &torn) {
				break // the count of missing lines follows after the next ones
			}
		}
		if closed {
			return
		}
	}
}

// take moves what is waiting to lines, and returns how many missing lines
// the log has not reported.
func (w *Writer) take(lines []byte) (taken []byte, missing uint64, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken, w.pending = w.pending, lines
	return taken, w.dropped - w.reported, w.closed
}

// pass writes lines, and after them how many are missing. It reports whether it
// could.
func (w *Writer) pass(lines []byte, missing uint64, torn *bool) bool {
	out := lines
	if *torn {
		out = append([]byte("\n"), out...)
	}
	if missing > 0 {
		out = append(out[:len(out):len(out)], w.lost(missing)...)
	}
	n, err := w.to.Write(out)
	if n > 0 {
		*torn = out[n-1] != '\n'
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure = err; err != nil {
		w.dropped += count(lines[min(n, len(lines)):])
		return false
	}
	w.reported += missing
	return true
}

func count(lines []byte) uint64 { return uint64(bytes.Count(lines, []byte("\n"))) }
