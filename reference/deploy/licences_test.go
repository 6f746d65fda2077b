//go:build long && unix

package deploy_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What is shipped beside the binary has the licence of each module in it.
func TestLicences(t *testing.T) {
	// In the workspace: the module cache may have no other versions, and no network either.
	t.Setenv("GOWORK", filepath.Join(absolute(t, root), "go.work"))
	name := filepath.Join(t.TempDir(), "LICENCES.txt")
	if out, err := exec.Command("../licences.sh", name).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	licences := read(t, name)
	const format = "{{with .Module}}{{if .Version}}{{.Path}} {{.Version}}{{end}}{{end}}"
	out, err := exec.Command("go", "list", "-C", "..", "-deps", "-f", format, ".").Output()
	must(t, err)
	modules := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(modules) < 50 {
		t.Errorf("the server has packages of %d modules, want all of them", len(modules))
	}
	for _, module := range append(modules, "Go") {
		if _, text, _ := strings.Cut(licences, "\n===== "+module); len(text) < 100 {
			t.Errorf("no licence of %s", module)
		}
	}
}
