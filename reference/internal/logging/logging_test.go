package logging

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/reference/internal/config"
)

var must = testcheck.NoError

func mustOpen(t *testing.T, c config.Log) *Log {
	t.Helper()
	l, err := Open(c, os.Stdout)
	must(t, err)
	return l
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	must(t, err)
	return string(text)
}

func TestLevelAndFormat(t *testing.T) {
	for _, tt := range []struct {
		c    config.Log
		want string
	}{
		{config.Log{Format: config.LogAuto}, `"level":"INFO","msg":"two","wait":"5s"`},
		{config.Log{Format: config.LogJSON, Level: slog.LevelDebug}, `"level":"DEBUG","msg":"one"`},
		{config.Log{Format: config.LogText}, `level=INFO msg=two wait=5s`},
	} {
		tt.c.File = filepath.Join(t.TempDir(), "log")
		l := mustOpen(t, tt.c)
		l.Logger().Debug("one")
		l.Logger().Info("two", slog.Duration("wait", 5*time.Second))
		l.Apply(config.Log{Level: slog.LevelWarn, Format: "ignored"})
		l.Logger().Info("three")
		l.Apply(tt.c)
		l.Logger().Info("four")
		l.Close(time.Second)
		got := read(t, tt.c.File)
		if !strings.Contains(got, tt.want) || !strings.Contains(got, "four") || strings.Contains(got, "three") {
			t.Errorf("%+v: the log is\n%s\nwant %s in it, and four, but not three", tt.c, got, tt.want)
		}
		if debug := strings.Contains(got, "one"); debug != (tt.c.Level == slog.LevelDebug) {
			t.Errorf("%+v: the log has the line of level debug: %v", tt.c, debug)
		}
	}
}

func TestLogFileThatCannotBeOpened(t *testing.T) {
	name := filepath.Join(t.TempDir(), "none", "log")
	_, err := Open(config.Log{File: name}, os.Stdout)
	if want := "cannot open the log file " + name + ": no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("Open = %v, want %s", err, want)
	}
	if err := mustOpen(t, config.Log{}).Reopen(); err != nil {
		t.Errorf("Reopen of standard output = %v", err)
	}
}

// After a rename, as by logrotate, each line is in one of the two files.
func TestReopen(t *testing.T) {
	dir := t.TempDir()
	name, old := filepath.Join(dir, "log"), filepath.Join(dir, "log.1")
	l := mustOpen(t, config.Log{File: name, Format: config.LogText})
	const lines = 2000
	written := make(chan bool)
	go func() {
		defer close(written)
		for i := range lines {
			l.Logger().Info("line", slog.Int("number", i))
			if i == lines/2 {
				if err := os.Rename(name, old); err != nil {
					t.Error(err)
				}
				if err := l.Reopen(); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	<-written
	l.Close(10 * time.Second)
	if l.Dropped() != 0 || l.Err() != nil {
		t.Errorf("%d lines are dropped: %v", l.Dropped(), l.Err())
	}
	both := read(t, old) + read(t, name)
	for i := range lines {
		if !strings.Contains(both, fmt.Sprintf("number=%d\n", i)) {
			t.Fatalf("line %d is in neither file", i)
		}
	}
	if !strings.Contains(read(t, name), fmt.Sprintf("number=%d\n", lines-1)) {
		t.Error("the new file does not have the last line")
	}
}

// A process that was killed, or whose disk was full, can leave a part of a line.
func TestPartOfALineIsEnded(t *testing.T) {
	for before, want := range map[string]string{
		"":             "",
		"whole\n":      "whole\n",
		"whole\n{\"ti": "whole\n{\"ti\n",
	} {
		name := filepath.Join(t.TempDir(), "log")
		must(t, os.WriteFile(name, []byte(before), 0o600))
		l := mustOpen(t, config.Log{File: name, Format: config.LogText})
		l.Logger().Info("first")
		l.Logger().Info("second")
		l.Close(10 * time.Second)
		got := read(t, name)
		if rest, ok := strings.CutPrefix(got, want); !ok || !strings.HasPrefix(rest, "time=") || strings.Count(rest, "\n") != 2 {
			t.Errorf("a log that was %q is\n%s\nwant %q and two lines", before, got, want)
		}
	}
}

// A file that would exceed its bound is renamed, also if it was large before or another name
// has its place, and no line is in two files. If the name is a link, the file that it leads
// to is renamed, so that both are on that disk.
func TestFileIsBounded(t *testing.T) {
	for _, link := range []bool{false, true} {
		t.Run(fmt.Sprint("link ", link), func(t *testing.T) { testFileIsBounded(t, link) })
	}
}

func testFileIsBounded(t *testing.T, link bool) {
	name := filepath.Join(t.TempDir(), "log")
	opened := name
	if link {
		opened = filepath.Join(t.TempDir(), "link")
		must(t, os.Symlink(name, opened))
	}
	put := func(name string, size int) {
		t.Helper()
		must(t, os.WriteFile(name, bytes.Repeat([]byte("x"), size), 0o600))
	}
	put(name, 3<<20)
	put(name+".old", 1)
	f, err := openFile(opened)
	must(t, err)
	defer f.close()
	f.max.Store(1 << 20)
	line := bytes.Repeat([]byte("y"), 1<<19)
	line[len(line)-1] = '\n'
	sizes := func(when string, want ...int64) {
		t.Helper()
		if n, err := f.Write(line); n != len(line) || err != nil {
			t.Fatalf("%s: Write = %d, %v", when, n, err)
		}
		for i, name := range []string{name, name + ".old"} {
			if info, err := os.Stat(name); err != nil || info.Size() != want[i] {
				t.Errorf("%s: %s has %d bytes, %v; want %d", when, filepath.Base(name), info.Size(), err, want[i])
			}
		}
	}
	sizes("a file that was larger", 1<<19, 3<<20)
	sizes("at the bound", 1<<20, 3<<20)
	sizes("beyond it", 1<<19, 1<<20)
	must(t, os.Rename(name, name+".1"))
	if _, err := f.Write(line); err != nil {
		t.Fatal(err)
	}
	sizes("the file was renamed by another program", 1<<19, 1<<20)
	f.max.Store(1)
	must(t, os.Truncate(name, 0))
	sizes("lines that are larger than the bound", 1<<19, 1<<20)
	f.max.Store(0)
	for i := range int64(4) {
		sizes("without a bound", (i+2)<<19, 1<<20)
	}
	must(t, errors.Join(os.Remove(name+".old"), os.MkdirAll(name+".old/in", 0o700)))
	f.max.Store(1 << 20)
	if n, err := f.Write(line); n != 0 || err == nil {
		t.Errorf("Write beyond the bound, without another file = %d, %v; want an error, so that the lines are counted as dropped", n, err)
	}
}

// A process that shares the file with another one does not rename the new one. Standard
// output, which can be /dev/stdout, has no bound.
func TestBoundOfASharedFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	var files [2]*file
	for i := range files {
		f, err := openFile(name)
		must(t, err)
		defer f.close()
		f.max.Store(20)
		files[i] = f
	}
	write := func(f *file, text string) {
		t.Helper()
		_, err := f.Write([]byte(text))
		must(t, err)
	}
	write(files[0], "the first 20 octets\n")
	write(files[0], "one\n")
	write(files[1], "two\n")
	if old, now := read(t, name+".old"), read(t, name); old != "the first 20 octets\n" || now != "one\ntwo\n" {
		t.Errorf("the old file has %q, the new one %q", old, now)
	}

	for _, standard := range []**os.File{&os.Stdout, &os.Stderr} {
		func() {
			defer func(before *os.File) { *standard = before }(*standard)
			*standard = files[0].f
			write(files[0], "line of 18 octets\n")
		}()
	}
	if want := "one\ntwo\n" + strings.Repeat("line of 18 octets\n", 2); read(t, name) != want {
		t.Errorf("standard output has %q, want %q", read(t, name), want)
	}
}

// The setting of the bound is in MiB, and takes effect while the log is open. The end of the
// log has the sums.
func TestOpenLogIsBounded(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	l := mustOpen(t, config.Log{File: name, MaxSize: 3})
	if got := l.file.max.Load(); got != 3<<20 {
		t.Errorf("the bound is %d bytes, want 3 MiB", got)
	}
	l.Apply(config.Log{MaxSize: 4})
	if got := l.file.max.Load(); got != 4<<20 {
		t.Errorf("the bound is %d bytes after the setting has changed, want 4 MiB", got)
	}
	for range 4 {
		l.Logger().Info("request", slog.Int("status", 429), slog.String("network", "192.0.2.1/32"))
	}
	l.Close(time.Second)
	if got := read(t, name); strings.Count(got, "\n") != 2 || !strings.HasSuffix(got, `"count":3}`+"\n") {
		t.Errorf("the log of four denials is\n%s\nwant one line, and one that counts three", got)
	}
}
