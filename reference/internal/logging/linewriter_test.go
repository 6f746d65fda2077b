package logging

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/config"
)

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
		if err := errors.Join(test.change(log, filepath.Join(dir, "old")), l.Reopen()); err != nil {
			t.Fatal(err)
		}
		if _, err := l.file.Write([]byte("next\n")); err != nil {
			t.Fatal(err)
		}
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
