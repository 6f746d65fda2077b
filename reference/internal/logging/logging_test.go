package logging

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/config"
)

func mustOpen(t *testing.T, c config.Log) *Log {
	t.Helper()
	l, err := Open(c, os.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
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
		if err := os.WriteFile(name, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
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

func TestReopenThatFailsKeepsTheFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "log")
	l := mustOpen(t, config.Log{File: name, Format: config.LogText})
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	if err := l.Reopen(); err == nil {
		t.Error("Reopen in a folder that is gone = nil, want an error")
	}
	l.Logger().Info("after")
	l.Close(10 * time.Second)
	if got := read(t, filepath.Join(dir+".old", "log")); !strings.Contains(got, "after") {
		t.Errorf("the old file is %q, want the line after the failure in it", got)
	}
	if err := mustOpen(t, config.Log{}).Reopen(); err != nil {
		t.Errorf("Reopen of standard output = %v", err)
	}
}

// Of requests that went well one in a number is logged, which the line says. Everything
// else is logged.
func TestSampling(t *testing.T) {
	var b strings.Builder
	l := new(Log)
	l.logger = slog.New(sampler{slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}}), &l.sample, new(atomic.Int64)})
	lines := func() []string {
		defer b.Reset()
		return strings.Split(strings.TrimSpace(b.String()), "\n")
	}
	request := func(status int, attrs ...any) {
		l.Logger().Info("request", append([]any{slog.Int("status", status)}, attrs...)...)
	}
	l.Apply(config.Log{Sample: 1})
	request(200)
	request(200)
	if diff := cmp.Diff([]string{"msg=request status=200", "msg=request status=200"}, lines()); diff != "" {
		t.Errorf("without sampling (-want +got):\n%s", diff)
	}
	l.Apply(config.Log{Sample: 3})
	for range 4 {
		request(200)
	}
	request(404)
	request(399)
	request(304)
	request(301)
	request(200, slog.Bool("aborted", true))
	request(500)
	l.Logger().Info("serving", slog.Int("status", 200))
	l.logger = l.Logger().With(slog.String("a", "b")).WithGroup("g")
	request(200)
	request(200)
	want := []string{
		"msg=request status=200 sample=3", "msg=request status=200 sample=3",
		"msg=request status=404", "msg=request status=301 sample=3",
		"msg=request status=200 aborted=true", "msg=request status=500", "msg=serving status=200",
	}
	if diff := cmp.Diff(want, lines()); diff != "" {
		t.Errorf("with sampling (-want +got):\n%s", diff)
	}
	request(200)
	if diff := cmp.Diff([]string{"msg=request a=b g.status=200 g.sample=3"}, lines()); diff != "" {
		t.Errorf("with sampling and attributes (-want +got):\n%s", diff)
	}
}

func BenchmarkSampling(b *testing.B) {
	for _, sample := range []int{1, 100} {
		b.Run(fmt.Sprintf("sample=%d", sample), func(b *testing.B) {
			l := new(Log)
			l.logger = slog.New(sampler{jsonHandler(io.Discard, nil), &l.sample, new(atomic.Int64)})
			l.Apply(config.Log{Sample: sample})
			b.ReportAllocs()
			for b.Loop() {
				l.Logger().LogAttrs(b.Context(), slog.LevelInfo, "request", slog.Int("status", 200), slog.String("route", "/v1/pets"))
			}
		})
	}
}
