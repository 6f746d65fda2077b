package architecture

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// screen is how many lines the page of a package may have, so that it can be read at once.
const screen = 65

func TestPagesFitAScreen(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.path, module+"/")
		if slices.ContainsFunc(unruled, func(dir string) bool { return within(name, dir) }) || slices.Contains(strings.Split(name, "/"), "internal") {
			continue
		}
		doc := exec.Command("go", "doc")
		doc.Dir = filepath.Join("../..", name)
		doc.Env = append(os.Environ(), "GO111MODULE=off") // or it lists the modules of the workspace for each page
		page, err := doc.Output()
		if err != nil {
			t.Fatalf("go doc %s: %v", p.path, err)
		}
		if lines := bytes.Count(page, []byte("\n")); lines > screen {
			t.Errorf("go doc %s prints %d lines, want at most %d: move what is about one type or function to its comment", name, lines, screen)
		}
	}
}
