package memory

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// open opens the engine of a file.
func open(t *testing.T, file string) (*Limiter, func() error) {
	t.Helper()
	l, save, err := Open(file, Options{Now: func() time.Time { return noon }})
	must(t, err)
	return l, save
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
	for _, name := range []string{"usage.1.saving", "usage.20.saving", "usage.tmp", "usage.3", "other.4.saving"} {
		must(t, os.WriteFile(filepath.Join(folder, name), nil, 0o600))
	}
	t.Setenv("TMPDIR", filepath.Join(folder, "none")) // a file cannot be renamed from another file system
	for want := int64(9); want >= 7; want-- {
		l, save := open(t, file)
		bans, err := l.Bans(ctx)
		if err != nil || want < 9 && (len(bans) != 1 || bans[0].Subject != "bob") {
			t.Errorf("banned are %v (%v), want bob", bans, err)
		}
		wantRemaining(t, l, "ann", want)
		if want == 9 {
			must(t, l.Ban(ctx, "bob", time.Hour, ""))
		}
		must(t, save())
		wantRemaining(t, l, "ann", want-1) // lost
	}
	entries, err := os.ReadDir(folder)
	if names := fmt.Sprint(entries); err != nil || names != "[- other.4.saving - usage - usage.3 - usage.tmp]" {
		t.Fatalf("the folder has %v (%v), want the file and those of others", entries, err)
	}
	if info, err := entries[1].Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the file has the mode %v (%v), want one for its owner alone", info.Mode(), err)
	}
}

// A file that cannot be used is an error that names it, not an engine without usage.
func TestFileThatCannotBeUsed(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "usage")
	l, save := open(t, file)
	wantRemaining(t, l, "ann", 9)
	must(t, save())
	content, err := os.ReadFile(file)
	must(t, err)
	other := newLimiter(t, Options{}).Secret()
	for name, c := range map[string]struct {
		file, content string
		opts          Options
		want          string
	}{
		"empty":           {"empty", "", Options{}, "unexpected end of JSON input"},
		"half":            {"half", string(content[:len(content)/2]), Options{}, "unexpected end of JSON input"},
		"something else":  {"else", "usage: 1", Options{}, "invalid character 'u'"},
		"a wrong record":  {"record", strings.Replace(string(content), `"Data":"`, `"Data":"AAAA`, 1), Options{}, "the data is damaged"},
		"another secret":  {"other", string(content), Options{Secret: other}, "another secret"},
		"a folder":        {".", "", Options{}, "is a directory"},
		"a wrong option":  {"option", string(content), Options{MaxSubjects: -1}, "Options.MaxSubjects"},
		"a secret of one": {"one", `{"Secret":"AA=="}`, Options{}, "Secret must have 32 bytes"},
		"other JSON":      {"json", `{"Listen":":80"}`, Options{}, "not a file of usage"},
		"null":            {"null", "null", Options{Secret: other}, "not a file of usage"},
	} {
		path := filepath.Join(folder, c.file)
		if c.file != "." {
			must(t, os.WriteFile(path, []byte(c.content), 0o600))
		}
		c.opts.Now = noonSharp
		l, save, err := Open(path, c.opts)
		if err == nil || l != nil || save != nil || !strings.HasPrefix(err.Error(), "memory: ") || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("%s: got error %v, want one with the file and %q", name, err, c.want)
		}
	}
}

// A save that fails leaves the old file as it is. Concurrent ones wait for each other.
func TestFileThatCannotBeWritten(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "there", "usage")
	if _, _, err := Open(file, Options{}); err == nil || !strings.Contains(err.Error(), "memory: usage cannot be saved in "+file) {
		t.Errorf("Open without the folder: %v, want an error", err)
	}
	must(t, os.Mkdir(filepath.Dir(file), 0o700))
	l, save := open(t, file)
	wantRemaining(t, l, "ann", 9)
	if err := os.Remove(filepath.Dir(file)); err != nil { // Open has left nothing there
		t.Fatal(err)
	}
	if err := save(); err == nil || !strings.Contains(err.Error(), "memory: saving usage: ") {
		t.Errorf("save without the folder: %v, want an error", err)
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
	again, _ := open(t, file)
	for i := range 8 {
		wantRemaining(t, again, fmt.Sprint("user:", i), 8)
	}
}
