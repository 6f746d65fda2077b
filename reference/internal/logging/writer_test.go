package logging

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A disk takes bytes while there is room.
type disk struct {
	stuck chan bool // if it is not nil, a write waits until it is closed

	mu      sync.Mutex
	written strings.Builder
	writes  int
	room    int // in bytes
}

var errFull = errors.New("no space left")

func (d *disk) Write(p []byte) (int, error) {
	if d.stuck != nil {
		<-d.stuck
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writes++
	n := min(len(p), d.room)
	d.room -= n
	d.written.Write(p[:n])
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}

// content waits until nothing is left to do at once, and returns what was written.
func (d *disk) content() string {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.written.String()
}

func (d *disk) makeRoom(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room += n
}

func lostLine(n int) []byte { return fmt.Appendf(nil, "%d lines lost\n", n) }

// The first line is written immediately; lines are then collected for a moment. All are written
// in their order, at the latest when the log is closed.
func TestLinesAreWrittenInOrderAndInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{room: 1 << 20}
		w := newWriter(d, lostLine)
		fmt.Fprint(w, "first\n")
		if got := d.content(); got != "first\n" {
			t.Errorf("written is %q, want the first line immediately", got)
		}
		want := "first\n"
		for i := range 100 {
			fmt.Fprintf(w, "line %d\n", i)
			want += fmt.Sprintf("line %d\n", i)
		}
		time.Sleep(batchPause)
		if got := d.content(); got != want || d.writes != 2 {
			t.Errorf("%d writes of %d bytes after %v, want a second one for all other lines", d.writes, len(got), batchPause)
		}
		fmt.Fprint(w, "last\n")
		w.Close(time.Minute)
		if got := d.content(); got != want+"last\n" {
			t.Errorf("after Close, %d bytes are written, want also the last line", len(got))
		}
	})
}

// While nothing reads, lines wait, those without room are dropped, and nothing that logs
// waits. What was dropped is said as soon as lines are written again.
func TestDroppedLinesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{room: 10 << 20, stuck: make(chan bool)}
		w := newWriter(d, lostLine)
		line := strings.Repeat("x", 1023) + "\n"
		fmt.Fprint(w, line)
		synctest.Wait() // it is on its way
		const room = bufferSize / 1024
		for range room + 7 {
			fmt.Fprint(w, line)
		}
		close(d.stuck)
		time.Sleep(time.Second)
		fmt.Fprint(w, "next\n")
		if want := strings.Repeat(line, 1+room) + "7 lines lost\nnext\n"; d.content() != want {
			t.Error("the log does not have the lines for which there was room, how many are missing, and the next one")
		}
		w.Close(time.Minute)
	})
}

// A stuck reader does not hold up the end of the server.
func TestCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{stuck: make(chan bool)}
		w := newWriter(d, lostLine)
		fmt.Fprint(w, "line\n")
		begin := time.Now()
		w.Close(2 * time.Second)
		if took := time.Since(begin); took != 2*time.Second {
			t.Errorf("Close took %v, want 2s", took)
		}
		close(d.stuck)
	})
}

// After a full disk the log goes on where it stopped: no part of a line is left, and no line
// is lost as long as there is room in memory.
func TestAFullDiskLeavesNoPartOfALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{room: 9}
		w := newWriter(d, lostLine)
		fmt.Fprint(w, "first\n")
		fmt.Fprint(w, "second\n")
		time.Sleep(time.Minute)
		fmt.Fprint(w, "third\n")
		if got := d.content(); got != "first\nsec" {
			t.Errorf("the full disk has %q", got)
		}
		d.makeRoom(2)
		time.Sleep(retryPause)
		if got := d.content(); got != "first\nsecon" {
			t.Errorf("the disk with room for 2 bytes more has %q", got)
		}
		d.makeRoom(100)
		time.Sleep(retryPause + batchPause)
		if got, want := d.content(), "first\nsecond\nthird\n"; got != want {
			t.Errorf("the disk with room has %q, want %q", got, want)
		}
		d.room = 0
		fmt.Fprint(w, "fourth\n")
		begin := time.Now()
		w.Close(time.Minute)
		if took := time.Since(begin); took > retryPause {
			t.Errorf("Close took %v on the full disk, want that it gives up", took)
		}
	})
}
