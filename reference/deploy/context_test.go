//go:build long

package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// .dockerignore keeps nothing back that the build needs.
func TestTheBuildContext(t *testing.T) {
	f, err := os.Open(root + "/.dockerignore")
	must(t, err)
	defer f.Close()
	patterns, err := ignorefile.ReadAll(f)
	must(t, err)
	ignored, err := patternmatcher.New(patterns)
	must(t, err)
	files := buildFiles(t)
	if len(files) < 200 {
		t.Errorf("the server is built from %d files, want all of them", len(files))
	}
	for _, file := range files {
		if match, err := ignored.MatchesOrParentMatches(file); err != nil || match {
			t.Errorf("%s: ignored %t, %v; the build needs it", file, match, err)
		}
	}
}

// buildFiles returns the files of the repository that the server is built from.
func buildFiles(t *testing.T) (files []string) {
	t.Helper()
	const format = `{{$p := .}}{{range .GoFiles}}{{$p.Dir}}/{{.}}
{{end}}{{range .EmbedFiles}}{{$p.Dir}}/{{.}}
{{end}}{{with .Module}}{{.GoMod}}{{end}}`
	// In the workspace: the module cache may have no other versions, and no network either.
	out, err := exec.Command("go", "list", "-C", "..", "-deps", "-f", format, ".").Output()
	must(t, err)
	top := absolute(t, root)
	for line := range strings.Lines(string(out)) {
		if rel, err := filepath.Rel(top, strings.TrimSpace(line)); err == nil && !strings.HasPrefix(rel, "..") {
			files = append(files, filepath.ToSlash(rel))
		}
	}
	return append(files, "reference/go.sum")
}
