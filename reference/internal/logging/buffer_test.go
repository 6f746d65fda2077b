package logging

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/config"
)

// A pipe is a writer that can be blocked, and fail.
type pipe struct {
	mu      sync.Mutex // held while blocked
	written bytes.Buffer
	room    int // bytes that are still taken, if failing
	failing error
}

func (p *pipe) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failing != nil {
		n := min(p.room, len(b))
		p.room -= n
		p.written.Write(b[:n])
		return n, p.failing
	}
	return p.written.Write(b)
}

func lostLine(n uint64) []byte { return fmt.Appendf(nil, "%d lines lost\n", n) }

func TestLinesArriveInOrder(t *testing.T) {
	var p pipe
	w := newBuffer(&p, lostLine)
	var want strings.Builder
	for i := range 1000 {
		fmt.Fprintf(w, "line %d\n", i)
		fmt.Fprintf(&want, "line %d\n", i)
	}
	if !w.Close(time.Minute) {
		t.Error("Close reports a failure")
	}
	if got := p.written.String(); got != want.String() {
		t.Errorf("written are %d bytes, want %d in the order of the lines", len(got), want.Len())
	}
	if w.Dropped() != 0 || w.Err() != nil {
		t.Errorf("%d lines were dropped (%v), want none", w.Dropped(), w.Err())
	}
	fmt.Fprintln(w, "late")
	if w.Dropped() != 1 {
		t.Error("a line after Close is not counted as dropped")
	}
}

// After a write, lines are collected for a moment.
func TestLinesAreWrittenInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p countingWriter
		w := newBuffer(&p, lostLine)
		fmt.Fprint(w, "first\n")
		synctest.Wait()
		if p.writes.Load() != 1 {
			t.Errorf("%d writes, want the first line at once", p.writes.Load())
		}
		for range 100 {
			fmt.Fprint(w, "line\n")
			synctest.Wait()
		}
		if p.writes.Load() != 1 {
			t.Errorf("%d writes, want that of the first line", p.writes.Load())
		}
		time.Sleep(batchTime)
		synctest.Wait()
		if p.writes.Load() != 2 {
			t.Errorf("%d writes after %v, want one for all other lines", p.writes.Load(), batchTime)
		}
		fmt.Fprint(w, "last\n")
		begin := time.Now()
		if !w.Close(time.Minute) || p.writes.Load() != 3 || time.Since(begin) != 0 {
			t.Errorf("%d writes and %v after Close, want the last line at once", p.writes.Load(), time.Since(begin))
		}
	})
}

type countingWriter struct{ writes atomic.Int64 }

func (c *countingWriter) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return len(p), nil
}

func TestABlockedWriterDelaysNoLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := blockable{open: make(chan bool)}
		w := newBuffer(&p, lostLine)
		line := strings.Repeat("x", 1023) + "\n"
		fmt.Fprint(w, line)
		synctest.Wait() // it is on its way
		for range bufferSize/len(line) + 7 {
			fmt.Fprint(w, line) // returns, or else the test ends in a deadlock
		}
		if got := w.Dropped(); got != 7 {
			t.Errorf("%d lines were dropped, want the 7 for which there is no room", got)
		}
		if w.Err() == nil {
			t.Error("Err = nil while lines are dropped")
		}
		close(p.open)
		synctest.Wait()
		if err := w.Err(); err != nil {
			t.Errorf("Err = %v once the log can be written again", err)
		}
		if want := line + "7 lines lost\n"; !strings.HasSuffix(p.written.String(), want) {
			t.Error("the log does not say how many lines are missing")
		}
		if got := w.Dropped(); got != 7 {
			t.Errorf("Dropped = %d after the log told of them, want 7 still", got)
		}
		w.Close(0)
	})
}

// blockable is a writer that waits until it is open.
type blockable struct {
	open    chan bool
	written bytes.Buffer
}

func (b *blockable) Write(p []byte) (int, error) {
	<-b.open
	return b.written.Write(p)
}

func TestCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := blockable{open: make(chan bool)}
		w := newBuffer(&p, lostLine)
		fmt.Fprintln(w, "line")
		begin := time.Now()
		if w.Close(2 * time.Second) {
			t.Error("Close says that everything is written, and nothing is")
		}
		if took := time.Since(begin); took != 2*time.Second {
			t.Errorf("Close took %v, want 2s", took)
		}
		close(p.open) // ends the goroutine
	})
}

func TestFailedWritesAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("no space left")
		p := &pipe{failing: full, room: 9}
		w := newBuffer(&lineWriter{to: p}, lostLine)
		fmt.Fprint(w, "first\nsecond\nthird\n")
		synctest.Wait()
		if got := w.Dropped(); got != 2 {
			t.Errorf("%d lines were dropped, want the 2 that were not written whole", got)
		}
		if err := w.Err(); !errors.Is(err, full) {
			t.Errorf("Err = %v, want the reason", err)
		}
		p.mu.Lock()
		p.failing = nil
		p.mu.Unlock()
		fmt.Fprint(w, "fourth\n")
		time.Sleep(batchTime)
		synctest.Wait()
		if got, want := p.written.String(), "first\nsec\nfourth\n2 lines lost\n"; got != want {
			t.Errorf("written is %q, want %q", got, want)
		}
		if !w.Close(time.Second) {
			t.Error("Close reports a failure that is over")
		}
	})
}

// After a part of a line, a line begins if it goes to the same file. Another file has no
// empty line.
func TestPartOfALineBeforeReopen(t *testing.T) {
	const part = `{"ti`
	for name, test := range map[string]struct {
		change func(log, old string) error
		want   string
	}{
		"renamed":     {os.Rename, "next\n"},
		"not renamed": {func(string, string) error { return nil }, "whole\n{\"ti\nnext\n"},
		"deleted":     {func(log, _ string) error { return os.Remove(log) }, "next\n"},
		"replaced by one that ends in a part": {func(log, old string) error {
			return errors.Join(os.Rename(log, old), os.WriteFile(log, []byte("an"), 0o600))
		}, "an\nnext\n"},
	} {
		dir := t.TempDir()
		log := filepath.Join(dir, "log")
		l := mustOpen(t, config.Log{File: log})
		if _, err := l.file.Write([]byte("whole\n" + part)); err != nil { // as on a full disk
			t.Fatal(err)
		}
		must(t, errors.Join(test.change(log, filepath.Join(dir, "old")), l.Reopen()))
		_, err := l.file.Write([]byte("next\n"))
		must(t, err)
		if got := read(t, log); got != test.want {
			t.Errorf("a log that was %s is %q, want %q", name, got, test.want)
		}
		l.Close(0)
	}
}

// The number of bytes is of the lines alone, as lines that are not among them are counted
// as dropped.
func TestLineWriterReportsTheBytesOfLines(t *testing.T) {
	p := &pipe{failing: errors.New("full"), room: 2}
	w := &lineWriter{to: p}
	var got []int
	write := func() {
		n, _ := w.Write([]byte("line\n"))
		got = append(got, n)
	}
	write() // "li"
	write() // nothing
	p.room = 1
	write() // the end of the line before
	write()
	p.room = 7
	write() // all of it, and no line end is needed first
	write() // "li"
	p.failing = nil
	write()
	if diff := cmp.Diff([]int{2, 0, 0, 0, 5, 2, 5}, got); diff != "" {
		t.Errorf("bytes of lines (-want +got):\n%s", diff)
	}
	if got, want := p.written.String(), "li\nline\nli\nline\n"; got != want {
		t.Errorf("written is %q, want %q", got, want)
	}
}
