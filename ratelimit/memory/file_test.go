package memory

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// open opens the engine of a file, and closes it when the test ends, or before.
func open(t *testing.T, file string) (l *Limiter, save, closeFile func() error) {
	t.Helper()
	l, save, closeFile, err := Open(file, Options{Now: func() time.Time { return noon }})
	must(t, err)
	t.Cleanup(func() { _ = closeFile() })
	return l, save, closeFile
}

// wantRemaining takes a unit of a subject.
func wantRemaining(t *testing.T, l *Limiter, subject string, want int64) {
	t.Helper()
	d, err := l.Take(ctx, subject, statePlan, 1)
	if err != nil || d.States[0].Remaining != want {
		t.Errorf("%s: %d of the minute left, error %v, want %d", subject, d.States[0].Remaining, err, want)
	}
}

// A file keeps usage and bans, is private, and is the only one that save leaves, also if it is
// opened by a link. Open removes what killed processes have left, and nothing else.
func TestFile(t *testing.T) {
	folder, links := t.TempDir(), t.TempDir()
	file := filepath.Join(links, "usage") // a relative link in another folder, and a link to that
	must(t, os.MkdirAll(filepath.Join(links, "far", "away"), 0o700))
	must(t, os.Symlink(filepath.Join(links, "far", "away"), filepath.Join(links, "folder")))
	must(t, os.Symlink("folder/link", file))
	must(t, os.Symlink(filepath.Join(folder, "usage"), filepath.Join(links, "far", "away", "link")))
	for _, name := range []string{"usage.1.saving", "usage.20.saving", "usage.tmp", "usage.3", "usage.4.5.saving", "usage2.4.saving"} {
		must(t, os.WriteFile(filepath.Join(folder, name), nil, 0o600))
	}
	t.Setenv("TMPDIR", filepath.Join(folder, "none")) // a file cannot be renamed from another file system
	for want := int64(9); want >= 7; want-- {
		l, save, closeFile := open(t, file)
		bans, err := l.Bans(ctx)
		if err != nil || want < 9 && (len(bans) != 1 || bans[0].Subject != "bob") {
			t.Errorf("banned are %v (%v), want bob", bans, err)
		}
		wantRemaining(t, l, "ann", want)
		if want == 9 {
			must(t, l.Ban(ctx, "bob", time.Hour, ""))
		}
		must(t, save())
		killed(t, file, closeFile, func() { wantRemaining(t, l, "ann", want-1) }) // lost
	}
	entries, err := os.ReadDir(folder)
	if names := fmt.Sprint(entries); err != nil || names != "[- usage - usage.3 - usage.4.5.saving - usage.lock - usage.tmp - usage2.4.saving]" {
		t.Fatalf("the folder has %v (%v), want the file and those of others", entries, err)
	}
	if info, err := entries[0].Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the file has the mode %v (%v), want one for its owner alone", info.Mode(), err)
	}
}

// A file that cannot be used is an error that names it, not an engine without usage.
func TestFileThatCannotBeUsed(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "usage")
	l, _, closeFile := open(t, file)
	wantRemaining(t, l, "ann", 9)
	for i := range 20 {
		must(t, l.Ban(ctx, fmt.Sprint("user:", i), time.Hour, ""))
	}
	must(t, closeFile())
	content, err := os.ReadFile(file)
	must(t, err)
	other := newLimiter(t, Options{}).Secret()
	for name, c := range map[string]struct {
		file, content string
		opts          Options
		want          string
	}{
		"empty":           {"empty", "", Options{}, "the file is empty"},
		"half":            {"half", string(content[:len(content)/2]), Options{}, "unexpected end of JSON input"},
		"something else":  {"else", "usage: 1", Options{}, "invalid character 'u'"},
		"a wrong record":  {"record", strings.Replace(string(content), `"Data":"`, `"Data":"AAAA`, 1), Options{}, "the data is damaged"},
		"another secret":  {"other", string(content), Options{Secret: other}, "another secret"},
		"a folder":        {".", "", Options{}, "is a directory"},
		"a wrong option":  {"option", string(content), Options{MaxSubjects: -1}, "Options.MaxSubjects"},
		"a secret of one": {"one", `{"Secret":"AA=="}`, Options{}, "Secret must have 32 bytes"},
		"other JSON":      {"json", `{"Listen":":80"}`, Options{}, "not a file of usage"},
		"null":            {"null", "null", Options{Secret: other}, "not a file of usage"},
		"too small":       {"small", string(content), Options{MaxSubjects: 8}, "records have no place under Options.MaxSubjects"},
	} {
		path := filepath.Join(folder, c.file)
		if c.file != "." {
			must(t, os.WriteFile(path, []byte(c.content), 0o600))
		}
		c.opts.Now = noonSharp
		for range 2 { // the error is not that the first call has locked it
			l, save, closeFile, err := Open(path, c.opts)
			if err == nil || l != nil || save != nil || closeFile != nil || !strings.HasPrefix(err.Error(), "memory: ") ||
				!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: got error %v, want one with the file and %q", name, err, c.want)
			}
			if _, system := errors.AsType[*fs.PathError](err); system != (c.file == ".") {
				t.Errorf("%s: %v is a PathError: %v, want it for the folder alone", name, err, system)
			}
		}
	}
}

// A path leads to the file that the system would open, or to an error.
func TestFileNames(t *testing.T) {
	folder := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(folder, "far", "away"), 0o700))
	must(t, os.Symlink(filepath.Join("far", "away"), filepath.Join(folder, "link")))
	_, _, closeFile := open(t, filepath.Join(folder, "link")+"/../usage")
	must(t, closeFile())
	if _, err := os.Stat(filepath.Join(folder, "far", "usage")); err != nil {
		t.Errorf("Open of link/../usage: %v, want the file beside where the link leads", err)
	}
	must(t, os.Symlink("b", filepath.Join(folder, "a")))
	must(t, os.Symlink("a", filepath.Join(folder, "b")))
	t.Chdir(folder)
	for _, path := range []string{"", "usage/", "a", strings.Repeat("n", 250)} { // a save needs longer names
		_, _, _, err := Open(path, Options{})
		if _, system := errors.AsType[*fs.PathError](err); err == nil || system != (len(path) == 1 || len(path) == 250) {
			t.Errorf("Open of %.10q: %v is a PathError: %v", path, err, system)
		}
	}
}

// A save that fails leaves the old file as it is. Concurrent ones wait for each other.
func TestFileThatCannotBeWritten(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "there", "usage")
	if _, _, _, err := Open(file, Options{}); err == nil || !strings.Contains(err.Error(), "memory: usage in "+file) {
		t.Errorf("Open without the folder: %v, want an error", err)
	}
	must(t, os.Mkdir(filepath.Dir(file), 0o700))
	l, save, closeFile := open(t, file)
	wantRemaining(t, l, "ann", 9)
	must(t, os.Remove(file+".lock"))
	must(t, os.Remove(filepath.Dir(file))) // Open has left nothing else there
	for _, save := range []func() error{save, closeFile, closeFile} {
		if err := save(); err == nil || !strings.Contains(err.Error(), "memory: saving usage: ") {
			t.Errorf("without the folder: %v, want an error each time", err)
		}
	}
	must(t, os.MkdirAll(filepath.Join(folder, "there", "usage", "full"), 0o700))
	if err := save(); err == nil {
		t.Error("save has replaced a folder")
	}
	if entries, err := os.ReadDir(filepath.Join(folder, "there")); err != nil || len(entries) != 1 {
		t.Errorf("after an error the folder has %v (%v), want what was there", entries, err)
	}
	must(t, os.RemoveAll(file))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			wantRemaining(t, l, fmt.Sprint("user:", i), 9)
			if err := save(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	wg.Go(func() { _ = save() }) // an error if closeFile comes first
	must(t, closeFile())
	wg.Wait()
	again, _, _ := open(t, file)
	for i := range 8 {
		wantRemaining(t, again, fmt.Sprint("user:", i), 8)
	}
}

// killed lets a change be lost, as if the process were killed after its last save.
func killed(t *testing.T, file string, closeFile func() error, change func()) {
	t.Helper()
	saved, err := os.ReadFile(file)
	must(t, err)
	change()
	must(t, closeFile())
	target, err := filepath.EvalSymlinks(file)
	must(t, err)
	must(t, os.WriteFile(target, saved, 0o600))
}

// One engine at a time has a file, under any name, and none can write it after it was closed.
func TestFileInUse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "usage")
	link := file + ".link"
	must(t, os.Symlink(file, link))
	l, save, closeFile := open(t, file)
	must(t, os.WriteFile(file+".1.saving", nil, 0o600)) // a save is under way
	for _, name := range []string{file, link} {
		if _, _, _, err := Open(name, Options{}); !errors.Is(err, ratelimit.ErrUnavailable) || !strings.Contains(err.Error(), "another process uses the file") {
			t.Errorf("Open of %s while it is open: %v, want an error that wraps ErrUnavailable", name, err)
		}
	}
	if _, err := os.Stat(file + ".1.saving"); err != nil {
		t.Errorf("Open of a file in use has removed another file: %v", err)
	}
	wantRemaining(t, l, "ann", 9)
	must(t, closeFile())
	wantRemaining(t, l, "ann", 8)
	if err := save(); err == nil || !strings.Contains(err.Error(), "is closed") {
		t.Errorf("save of a closed file: %v, want an error", err)
	}
	must(t, closeFile())
	l, _, _ = open(t, link)
	wantRemaining(t, l, "ann", 8)
}

// A save writes if something has changed since the last one that succeeded: usage, a ban, or an
// account that was forgotten.
func TestFileIsWrittenAfterChangesOnly(t *testing.T) {
	file := filepath.Join(t.TempDir(), "usage")
	l, save, closeFile := open(t, file)
	changes := map[string]func(){
		"nothing":   func() {},
		"the start": func() {},
		"usage":     func() { wantRemaining(t, l, "ann", 9) },
		"a ban":     func() { must(t, l.Ban(ctx, "bob", time.Hour, "")) },
		"an unban": func() {
			if _, err := l.Unban(ctx, "bob"); err != nil {
				t.Fatal(err)
			}
		},
	}
	for _, change := range []string{"the start", "nothing", "usage", "nothing", "a ban", "an unban", "nothing"} {
		_ = os.Remove(file) // that it is there again is the write
		changes[change]()
		must(t, save())
		if _, err := os.Stat(file); (err == nil) != (change != "nothing") {
			t.Errorf("after %s: %v, want a file after a change only", change, err)
		}
	}
	wantRemaining(t, l, "ann", 8)
	must(t, os.Mkdir(file, 0o700))
	if err := save(); err == nil {
		t.Error("save has replaced a folder")
	}
	must(t, os.Remove(file))
	must(t, closeFile())
	if _, err := os.Stat(file); err != nil {
		t.Errorf("after a save that failed: %v, want that the next one writes", err)
	}
}
