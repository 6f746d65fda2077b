//go:build unix

package logging

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/config"
)

func mustMakePipe(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(name, 0o600))
	return name
}

// openReader opens a pipe without waiting for the process that writes it.
func openReader(t *testing.T, pipe string) *os.File {
	t.Helper()
	r, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	must(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

// within fails the test if f takes too long.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan bool)
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("%s has not returned after a minute", what)
	}
}

// A server must neither start nor reload its settings for ever because nothing reads the
// pipe that log.file names.
func TestAPipeWithoutReaderIsAnError(t *testing.T) {
	name := mustMakePipe(t)
	want := "cannot open the log file " + name + ": no process reads this pipe; start its reader first"
	within(t, "Open", func() {
		if _, err := Open(config.Log{File: name}, os.Stdout); err == nil || err.Error() != want {
			t.Errorf("Open = %v, want %s", err, want)
		}
	})
	r := openReader(t, name)
	l := mustOpen(t, config.Log{File: name})
	r.Close()
	within(t, "Reopen", func() {
		if err := l.Reopen(); err == nil || err.Error() != want {
			t.Errorf("Reopen = %v, want %s", err, want)
		}
	})
	r = openReader(t, name)
	if err := l.Reopen(); err != nil {
		t.Fatalf("Reopen with a new reader = %v", err)
	}
	l.Logger().Info("for the new reader")
	l.Close(10 * time.Second)
	if got, err := io.ReadAll(r); err != nil || !strings.Contains(string(got), "for the new reader") {
		t.Errorf("the new reader got %q, %v", got, err)
	}
}

// What reads the pipe may be stuck. A reload of the settings does not wait for it.
func TestReopenDoesNotWaitForAWrite(t *testing.T) {
	name := mustMakePipe(t)
	r := openReader(t, name)
	l := mustOpen(t, config.Log{File: name, Format: config.LogText})
	const lines, length = 40, 10_000 // more than a pipe holds
	for range lines {
		l.Logger().Info(strings.Repeat("x", length))
	}
	for range 3 {
		within(t, "Reopen", func() {
			if err := l.Reopen(); err != nil {
				t.Errorf("Reopen = %v", err)
			}
		})
	}
	l.Logger().Info("after", slog.Int("n", 1))
	read := make(chan string)
	go func() {
		got, _ := io.ReadAll(r)
		read <- string(got)
	}()
	l.Close(20 * time.Second)
	got := <-read
	if n := strings.Count(got, strings.Repeat("x", length)); n != lines || !strings.Contains(got, "after") || l.Dropped() != 0 {
		t.Errorf("the reader got %d of %d lines, and %d were dropped", n, lines, l.Dropped())
	}
}

// Opened again, a pipe still holds the part of a line that was written to it.
func TestPartOfALineInAPipe(t *testing.T) {
	name := mustMakePipe(t)
	r := openReader(t, name)
	l := mustOpen(t, config.Log{File: name})
	for _, step := range []func() error{
		func() error { _, err := l.file.Write([]byte("par")); return err },
		l.Reopen,
		func() error { _, err := l.file.Write([]byte("next\n")); return err },
	} {
		must(t, step())
	}
	l.Close(10 * time.Second)
	if got, err := io.ReadAll(r); err != nil || string(got) != "par\nnext\n" {
		t.Errorf("the reader got %q, %v, want the line after a line end", got, err)
	}
}

// A file that is opened again while a write is stuck gets the next lines.
func TestReopenDuringAWrite(t *testing.T) {
	name := mustMakePipe(t)
	r := openReader(t, name)
	l := mustOpen(t, config.Log{File: name, Format: config.LogText})
	stuck := make(chan bool)
	go func() {
		defer close(stuck)
		if _, err := l.file.Write(make([]byte, 1<<20)); err != nil { // more than a pipe holds
			t.Error(err)
		}
	}()
	if _, err := io.ReadFull(r, make([]byte, 1)); err != nil { // it has begun
		t.Fatal(err)
	}
	must(t, errors.Join(os.Rename(name, name+".old"), l.Reopen()))
	l.Logger().Info("after")
	_, err := io.ReadFull(r, make([]byte, 1<<20-1))
	must(t, err)
	<-stuck
	l.Close(20 * time.Second)
	if got := read(t, name); !strings.Contains(got, "after") {
		t.Errorf("the file that was opened during a write is %q, want the next line in it", got)
	}
}
