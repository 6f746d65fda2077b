package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSourceSeesChangesThatLast(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "petstore.yaml")
	put := func(name, content string) func() {
		return func() {
			must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
		}
	}
	rename := func(content string) func() {
		return func() {
			put("new", content)()
			must(t, os.Rename(filepath.Join(dir, "new"), file))
		}
	}
	// As Kubernetes does: the file is a link through a folder that is a link.
	link := func(version, content string) func() {
		return func() {
			must(t, os.Mkdir(filepath.Join(dir, version), 0o700))
			put(filepath.Join(version, "petstore.yaml"), content)()
			for _, l := range []struct{ to, name string }{{version, "data"}, {"data/petstore.yaml", "petstore.yaml"}} {
				must(t, os.Symlink(l.to, filepath.Join(dir, "link")))
				must(t, os.Rename(filepath.Join(dir, "link"), filepath.Join(dir, l.name)))
			}
		}
	}
	remove := func() {
		must(t, os.Remove(file))
	}
	nothing := func() {}

	put("petstore.yaml", "max_connections: 1")()
	s := NewSource(Flags{"config": &file}, nil)
	_, err := s.Load()
	must(t, err)
	for _, step := range []struct {
		name    string
		act     func()
		changed bool
		load    string // if changed: "" or the beginning of the error
	}{
		{"nothing", nothing, false, ""},
		{"half of a file", put("petstore.yaml", "max_conn"), false, ""},
		{"the whole file", put("petstore.yaml", "max_connections: 2"), false, ""},
		{"the whole file, again", nothing, true, ""},
		{"no further change", nothing, false, ""},
		{"an editor that renames: the file is away", remove, false, ""},
		{"an editor that renames: the file is there", put("petstore.yaml", "max_connections: 3"), false, ""},
		{"an editor that renames, again", nothing, true, ""},
		{"a rename", rename("max_connections: 4"), false, ""},
		{"a rename, again", nothing, true, ""},
		{"a link", link("one", "max_connections: 5"), false, ""},
		{"a link, again", nothing, true, ""},
		{"another link", link("two", "max_connections: 6"), false, ""},
		{"another link, again", nothing, true, ""},
		{"a mistake", rename("max_connections: x"), false, ""},
		{"a mistake, again", nothing, true, file + ":1:18: max_connections: must be"},
		{"the same mistake", rename("max_connections: x"), false, ""},
		{"the same mistake, again", nothing, false, ""},
		{"no content", rename(""), false, ""},
		{"no content, again", nothing, true, file + ": the file is empty"},
		{"no file", remove, false, ""},
		{"no file, again", nothing, true, "cannot read settings file " + file},
		{"still no file", nothing, false, ""},
		{"a folder", func() { must(t, os.Mkdir(file, 0o700)) }, false, ""},
		{"a folder, again", nothing, true, "cannot read settings file " + file + ": it is not a regular file"},
		{"back again", func() { remove(); rename("max_connections: 6")() }, false, ""},
		{"back again, again", nothing, true, ""},
		{"a change and back", rename("max_connections: 7"), false, ""},
		{"back before it lasted", rename("max_connections: 6"), false, ""},
		{"it lasts", nothing, false, ""},
	} {
		step.act()
		if got := s.Changed(); got != step.changed {
			t.Fatalf("%s: Changed = %v, want %v", step.name, got, step.changed)
		}
		if !step.changed {
			continue
		}
		for range 2 { // the second is for a signal
			_, err := s.Load()
			if got := errorText(err); (got == "") != (step.load == "") || !strings.HasPrefix(got, step.load) {
				t.Errorf("%s: Load = %q, want %q", step.name, got, step.load)
			}
		}
	}
}
