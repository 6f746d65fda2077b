package main

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// unreleased lists the modules that only a checkout uses.
var unreleased = []string{"benchmarks", "examples", "reference"}

// A module is one that go.work names.
type module struct {
	dir      string // from the root of the repository, with slashes
	path     string
	requires []string // the paths of other modules of the repository
}

func (m module) released() bool { return !slices.Contains(unreleased, m.dir) }

// tag returns the tag of a version of the module.
func (m module) tag(version string) string { return path.Join(m.dir, version) }

// modules returns the modules of the workspace, and an error if one that is
// released requires one that is not.
func modules(root string) ([]module, error) {
	var work struct{ Use []struct{ DiskPath string } }
	if err := goJSON(root, &work, "work", "edit", "-json"); err != nil {
		return nil, err
	}
	var all []module
	released := make(map[string]bool) // by path
	for _, use := range work.Use {
		var mod struct {
			Module  struct{ Path string }
			Require []struct{ Path string }
		}
		m := module{dir: path.Clean(use.DiskPath)}
		if err := goJSON(filepath.Join(root, filepath.FromSlash(m.dir)), &mod, "mod", "edit", "-json"); err != nil {
			return nil, err
		}
		m.path = mod.Module.Path
		for _, r := range mod.Require {
			m.requires = append(m.requires, r.Path)
		}
		released[m.path] = m.released()
		all = append(all, m)
	}
	for i, m := range all {
		all[i].requires = slices.DeleteFunc(m.requires, func(p string) bool { _, own := released[p]; return !own })
		for _, r := range all[i].requires {
			if m.released() && !released[r] {
				return nil, fmt.Errorf("%s is released and requires %s, which is not", m.path, r)
			}
		}
	}
	return all, nil
}

// goJSON runs the go command and decodes what it prints.
func goJSON(dir string, v any, args ...string) error {
	out, err := run(dir, "go", args...)
	if err == nil {
		err = json.NewDecoder(strings.NewReader(out)).Decode(v)
	}
	if err != nil {
		return fmt.Errorf("go %s in %s: %w", strings.Join(args, " "), dir, err)
	}
	return nil
}
