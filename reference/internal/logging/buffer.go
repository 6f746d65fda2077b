package logging

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
)

// bufferSize is how many bytes of lines wait to be written at most. As many again may be
// on their way.
const bufferSize = 1 << 20

// batchTime is how long lines are collected after a write, so that a busy server does not
// wake the goroutine, and call the system, for each line.
const batchTime = time.Millisecond

// A buffer passes lines on to another writer in the background, and counts those that it
// drops. It is safe for concurrent use.
type buffer struct {
	to   io.Writer
	lost func(lines uint64) []byte

	wake chan struct{} // holds an element if the goroutine has something to do
	done chan struct{} // closed when it has ended

	ending chan struct{} // closed by Close
	end    sync.Once

	mu       sync.Mutex
	pending  []byte // whole lines
	closed   bool
	dropped  uint64 // lines, ever
	reported uint64 // of them, those that the log has reported
	failure  error  // of the last write
}

// newBuffer returns a buffer in front of a writer of whole lines. lost returns the line with
// which the log says that lines are missing.
func newBuffer(to io.Writer, lost func(lines uint64) []byte) *buffer {
	b := &buffer{to: to, lost: lost, wake: make(chan struct{}, 1), done: make(chan struct{}), ending: make(chan struct{})}
	go b.loop()
	return b
}

// Write takes one or more whole lines. It never waits and never fails.
func (b *buffer) Write(lines []byte) (int, error) {
	b.mu.Lock()
	if b.closed || len(b.pending)+len(lines) > bufferSize {
		b.dropped += countLines(lines)
	} else {
		b.pending = append(b.pending, lines...)
	}
	b.mu.Unlock()
	b.signal()
	return len(lines), nil
}

// Dropped returns how many lines have been dropped since the start.
func (b *buffer) Dropped() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dropped
}

// Err returns an error with the number of dropped lines until the log has reported
// them, and nil otherwise.
func (b *buffer) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.dropped == b.reported:
		return nil
	case b.failure != nil:
		return fmt.Errorf("the log cannot be written, lines dropped since the start: %d: %w", b.dropped, b.failure)
	default:
		return fmt.Errorf("the log is not read fast enough, lines dropped since the start: %d", b.dropped)
	}
}

// Close writes the lines that are waiting, for at most a time, and reports whether
// it could. Lines that come later are dropped.
func (b *buffer) Close(atMost time.Duration) bool {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.end.Do(func() { close(b.ending) })
	b.signal()
	select {
	case <-b.done:
	case <-time.After(atMost):
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failure == nil
}

func (b *buffer) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *buffer) loop() {
	defer close(b.done)
	var lines []byte
	for range b.wake {
		closed := false
		for {
			var missing uint64
			lines, missing, closed = b.take(lines[:0])
			if len(lines) == 0 && missing == 0 {
				break
			}
			if !b.pass(lines, missing) {
				break // the count of missing lines follows after the next ones
			}
		}
		if closed {
			return
		}
		select {
		case <-time.After(batchTime):
		case <-b.ending:
		}
	}
}

// take moves what is waiting to lines, and returns how many missing lines
// the log has not reported.
func (b *buffer) take(lines []byte) (taken []byte, missing uint64, closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken, b.pending = b.pending, lines
	return taken, b.dropped - b.reported, b.closed
}

// pass writes lines, and after them how many are missing. It reports whether it
// could.
func (b *buffer) pass(lines []byte, missing uint64) bool {
	out := lines
	if missing > 0 {
		out = append(out[:len(out):len(out)], b.lost(missing)...)
	}
	n, err := b.to.Write(out)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failure = err; err != nil {
		b.dropped += countLines(lines[min(n, len(lines)):])
		return false
	}
	b.reported += missing
	return true
}

func countLines(lines []byte) uint64 { return uint64(bytes.Count(lines, []byte("\n"))) }

// A lineWriter begins a new line if a part of a line was written before.
type lineWriter struct {
	to   io.Writer
	torn bool // what is written ends in a part of a line
}

// Write writes whole lines, and returns how many bytes of them were written.
func (w *lineWriter) Write(lines []byte) (int, error) {
	out := lines
	if w.torn {
		out = append([]byte("\n"), lines...)
	}
	n, err := w.to.Write(out)
	if n > 0 {
		w.torn = out[n-1] != '\n'
	}
	return max(n-(len(out)-len(lines)), 0), err
}
